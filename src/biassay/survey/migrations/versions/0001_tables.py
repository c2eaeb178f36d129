"""Create the tables of the survey database."""

from __future__ import annotations

from alembic import op

from biassay.survey.database import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of the first release; after it, this migration lists them, and later ones change them."""
    metadata.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    """Drop the tables."""
    metadata.drop_all(op.get_bind())
