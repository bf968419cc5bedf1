"""Tables of the SQLite store."""

from __future__ import annotations

VERSION = 1

SCHEMA = """
CREATE TABLE IF NOT EXISTS ranker (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
-- id: ranker << 40 | seq, so that the table itself is in order of seq; topic: ranker << 5 | kind
CREATE TABLE IF NOT EXISTS log (
    id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL,
    decision TEXT, digest BLOB NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS log_event ON log (topic, event);
CREATE INDEX IF NOT EXISTS log_decision ON log (decision) WHERE decision IS NOT NULL;
CREATE TABLE IF NOT EXISTS snapshot (
    ranker INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, epoch INTEGER NOT NULL, code TEXT NOT NULL,
    config TEXT NOT NULL, hash TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY (ranker, seq));
CREATE TABLE IF NOT EXISTS api_key (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, digest BLOB NOT NULL, at INTEGER NOT NULL, note TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS lease (
    one INTEGER PRIMARY KEY CHECK (one = 1), holder TEXT NOT NULL, epoch INTEGER NOT NULL, until REAL NOT NULL);
"""
