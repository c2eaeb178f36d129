"""Name audits as a study."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.errors import UsageError
from biassay.models.backend import Capability
from biassay.models.base import Model
from biassay.models.registry import get_required_consents
from biassay.reporting.formats import format_count
from biassay.results.outcomes import Finding
from biassay.results.run_data import RunData
from biassay.results.run_folder import StudySchema
from biassay.stats.name_audit import LEAST_DOCUMENTS, AuditComponents
from biassay.studies.audit.inputs import (
    AuditInputs,
    AuditInputsRecord,
    count_names,
    draw_names,
    hold_out_names,
    load_audit_inputs,
)
from biassay.studies.audit.judges import list_judge_prompts
from biassay.studies.audit.measure import EFFECT, ENOUGH_DOCUMENTS, AuditRequests, make_design, measure_audit
from biassay.studies.audit.outcomes import OWN_PREFIX
from biassay.studies.audit.response_rows import measure_responses
from biassay.studies.audit.responses import ModelResponses, ResponseDesign
from biassay.studies.audit.results import TABLES, make_audit_findings
from biassay.studies.audit.settings import AuditSettings
from biassay.studies.study import Event, Requests, Study

TYPICAL = AuditComponents(names=0.02, documents=0.005, residual=0.01, document_means=1.0)
"""Variance components in units of the variance of documents: those of USE on examples/audit, rounded."""
TYPICAL_RESPONSES = AuditComponents(names=0.01, documents=0.005, residual=1.0)
"""Assumed variance components of responses, in units of the variance of single responses."""


class _AuditStudy(Study):
    name = "audit"
    title = "Name audit"
    schema = StudySchema(AuditSettings, AuditInputsRecord, TABLES)
    accepts_scorers = True
    presenter_path = "biassay.studies.audit.report:AuditPresenter"

    def load_inputs(self, settings: AuditSettings) -> AuditInputs:
        return load_audit_inputs(settings)

    def hold_out(self, inputs: AuditInputs, erasure: str, words: Collection[str]) -> AuditInputs:
        return hold_out_names(inputs, words)

    def fit_inputs(self, inputs: AuditInputs, models: Sequence[Model]) -> AuditInputs:
        return draw_names(inputs, models)

    def preview(self, inputs: AuditInputs) -> Iterable[str]:
        groups, n_documents = count_names(inputs.names), len(inputs.record.documents)
        settings = inputs.settings
        what = "prompt" if settings.writes else "document"
        if settings.collects_responses and n_documents < LEAST_DOCUMENTS:
            yield f"{format_count(n_documents, what)}: too few to test a difference; give at least {ENOUGH_DOCUMENTS}"
        if inputs.logged is not None or n_documents < LEAST_DOCUMENTS:
            return
        components, unit, typical = TYPICAL, "SD between documents", "typical of encoders"
        if settings.collects_responses:
            asked = ResponseDesign(inputs)
            responses = len(asked.prompts) * asked.n_candidates / (len(inputs.names) * n_documents)
            components = dataclasses.replace(TYPICAL_RESPONSES, residual=TYPICAL_RESPONSES.residual / responses)
            is_share = settings.answer in ("yes-no", "choice")
            of_share = " (1 SD is 50 percentage points of a share of 50%)" if is_share else ""
            unit, typical = f"SD of single responses{of_share}", "assumed for responses"
        alpha = settings.alpha / max(len(inputs.outcomes), 1)
        design = make_design(components, min(groups.values()), n_documents, len(groups), alpha)
        smallest = design.smallest_effect()
        at_most = "no difference" if smallest is None else f"a difference of {smallest:.2f} {unit}"
        yield (
            f"{len(inputs.names):,} names in {len(groups)} groups, {n_documents:,} {what}s: 80% power for {at_most}, "
            f"with variance components {typical}; power for {EFFECT:g} SD: {design.power(EFFECT):.0%}"
        )

    def required_capabilities(self, settings: AuditSettings) -> tuple[Capability, ...]:
        return ("replies",) if settings.question is not None or settings.collects_responses else ("texts",)

    def choose_capabilities(self, settings: AuditSettings, available: Sequence[Capability]) -> tuple[Capability, ...]:
        asks = settings.question is not None or settings.collects_responses
        if not asks and "texts" not in available and "replies" in available:
            return ("replies",)
        return self.required_capabilities(settings)

    def cache_key(self, inputs: AuditInputs) -> Any:
        runs_code = any(outcome.name.startswith(OWN_PREFIX) for outcome in inputs.outcomes)
        return None if runs_code else inputs.record

    def find_own_code(self, settings: AuditSettings) -> str:
        return next((name for name in settings.outcome if name.startswith(OWN_PREFIX)), "")

    def requests(self, inputs: AuditInputs, capabilities: Capabilities) -> Requests:
        if inputs.settings.collects_responses:
            prompts = ResponseDesign(inputs).prompts
            return Requests(prompts=tuple(dict.fromkeys(prompt.prompt for prompt in prompts)), accepts_part=True)
        wanted = AuditRequests(inputs, capabilities)
        if inputs.logged is not None:
            return Requests()
        if wanted.scale != "log-odds":
            return Requests(text_blocks=wanted.iter_text_blocks())
        if not capabilities.option_log_p:
            raise UsageError(
                "the endpoint does not report the probabilities of Yes and No; collect responses with --answer "
                "yes-no, or log the system's own decisions and audit them with --scores"
            )
        return Requests(prompts=tuple(dict.fromkeys(wanted.list_prompts())))

    def get_judge(self, settings: AuditSettings) -> str | None:
        return settings.judge

    def judge_requests(self, inputs: AuditInputs, outputs: ModelOutputs) -> Requests:
        return Requests(prompts=list_judge_prompts(ModelResponses.read(inputs, outputs)), accepts_part=True)

    def needs_all_models(self, settings: AuditSettings) -> bool:
        return settings.human is not None  # a label may be of a response of any model

    def check_reuse(self, settings: AuditSettings, given: Collection[object] = ()) -> None:
        super().check_reuse(settings, given)
        judge = settings.judge
        if judge is not None and judge not in given and (consents := get_required_consents(judge)):
            raise UsageError(
                f"the judge {judge!r} would {' and '.join(consents)}. This is never taken from a run folder. To allow "
                f"it, add the judge to the models: --model {shlex.quote(judge)}"
            )

    def measure(self, inputs: AuditInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
        if inputs.settings.collects_responses:
            return measure_responses(inputs, model, all_outputs)
        return measure_audit(inputs, model)

    def findings(self, run: RunData) -> Sequence[Finding]:
        return make_audit_findings(run)


STUDY = _AuditStudy()
