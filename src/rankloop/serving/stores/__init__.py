"""Where the log is kept: SQLite, PostgreSQL, and the checks that each of them passes."""

from rankloop.extras import require

require("apsw", "asyncpg", extra="serve", for_="rankloop.serving.stores")
