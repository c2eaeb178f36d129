# The command `biassay`, with what the human study needs. Other extras: docker build --build-arg EXTRAS=survey,figures .
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY src src
ARG EXTRAS=survey
RUN python -m venv /opt/biassay \
 && /opt/biassay/bin/python -m pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
RUN useradd --uid 10001 --create-home biassay
COPY --from=build /opt/biassay /opt/biassay
ENV PATH=/opt/biassay/bin:$PATH PYTHONUNBUFFERED=1 BIASSAY_CACHE=/tmp/biassay
USER 10001
WORKDIR /home/biassay
# Whether a study is answered is checked by compose.yaml: other commands have nothing to answer.
ENTRYPOINT ["biassay"]
CMD ["--help"]
