"""Create the tables of the survey database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_studies"),
    )
    op.create_table(
        "places",
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("valid", sa.Integer, nullable=False),
        sa.Column("held", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("group_name", name="pk_places"),
    )
    op.create_table(
        "participants",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("counted", sa.Text, nullable=False),
        sa.Column("repeated", sa.Integer, nullable=False),
        sa.Column("pool_id", sa.Text),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("which_group", sa.Text),
        sa.Column("high", sa.Text),
        sa.Column("low", sa.Text),
        sa.Column("agreement", sa.Float),
        sa.Column("reasons", sa.Text),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
        sa.Column("finished", sa.Float),
        sa.PrimaryKeyConstraint("id", name="pk_participants"),
        sa.UniqueConstraint("pool_id", name="uq_participants_pool_id"),
        sa.UniqueConstraint("code", name="uq_participants_code"),
    )
    op.create_index("ix_participants_status", "participants", ["status"])
    op.create_table(
        "annotations",
        sa.Column("participant_id", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("ratings", sa.Text, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("saved", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("participant_id", "place", name="pk_annotations"),
        sa.ForeignKeyConstraint(
            ["participant_id"], ["participants.id"], name="fk_annotations_participant_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "demographics",
        sa.Column("participant_id", sa.Text, nullable=False),
        sa.Column("answers", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("participant_id", name="pk_demographics"),
        sa.ForeignKeyConstraint(
            ["participant_id"], ["participants.id"], name="fk_demographics_participant_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("demographics", "annotations", "participants", "places", "studies"):
        op.drop_table(table)
