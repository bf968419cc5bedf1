"""How the service is: whether it can rank and write, what an operator should know, and numbers for Prometheus.

The numbers are gathered on request: serving keeps plain integers at no further cost.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from rankloop.serving.engine import Engine
from rankloop.serving.housekeeping import KINDS as ALERTS

_MOST = 20  # rankers that are spelled out


def notices(engine: Engine) -> list[str]:
    """What is wrong with single rankers: those that cannot be served, and alerts."""
    return [*engine.loaded.notices(), *engine.housekeeping.alerts.sentences()]


def remarks(engine: Engine) -> list[str]:
    """What is not as usual, although it can rank and write or waits until it can."""
    found = notices(engine)
    if len(found) > _MOST:
        found = [*found[:_MOST], f"and {len(found) - _MOST:,} more"]
    if engine.clock.jumps:
        found.append(
            f"the clock of this machine jumped {engine.clock.jumps} times; "
            f"it is {engine.clock.offset:+.1f} s from the log's"
        )
    found += engine.store.remarks()
    if engine.degraded:
        found.append(f"{len(engine.degraded):,} lists were shown without the store and wait to be logged")
    return found


class _Collector:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Everything, now."""
        engine, commit = self._engine, self._engine.commit
        for name, help_, value in (
            ("rankloop_commits", "Batches that were made durable", commit.batches),
            ("rankloop_events", "Events that were made durable", commit.events),
            ("rankloop_commit_seconds", "Seconds spent on making batches durable", commit.seconds),
            ("rankloop_clock_jumps", "Jumps of this machine's clock since the start", engine.clock.jumps),
            (
                "rankloop_database_clock_jumps",
                "Jumps of the database's clock since the store was made",
                engine.store.clock_jumps,
            ),
        ):
            yield CounterMetricFamily(name, help_, value=value)
        for name, help_, value in (
            ("rankloop_waiting", "Events that wait for the disk", commit.waiting),
            ("rankloop_ready", "Whether it can rank and write", float(engine.trouble is None)),
            ("rankloop_cache_bytes", "Lists at hand, of all rankers", engine.loaded.cache.n_bytes),
            ("rankloop_clock_offset_seconds", "This machine's clock minus the log's", engine.clock.offset),
            (
                "rankloop_degraded_waiting",
                "Lists shown without the store, not logged yet",
                len(engine.degraded),
            ),
        ):
            yield GaugeMetricFamily(name, help_, value=value)
        counts = CounterMetricFamily(
            "rankloop_ranker_events", "What happened, by kind", labels=["ranker", "kind"]
        )
        gauges = {
            "rankloop_model_seq": "How far the state has folded the log",
            "rankloop_rounds": "Rounds that the present state has learnt from",
            "rankloop_parked": "Feedback that waits for its decision",
            "rankloop_snapshot_seq": "The seq of the newest snapshot",
        }
        families = {name: GaugeMetricFamily(name, text, labels=["ranker"]) for name, text in gauges.items()}
        estimate = GaugeMetricFamily(
            "rankloop_estimate",
            "Mean value of a shown list, where its bounds say something",
            labels=["ranker", "measure", "bound"],
        )
        alerts = GaugeMetricFamily(
            "rankloop_alert", "Whether something is not as it should be", labels=["ranker", "alert"]
        )
        lifts = GaugeMetricFamily(
            "rankloop_lift",
            "Mean reward of the ranker's lists less that of the baseline's at the same time",
            labels=["ranker", "bound"],
        )
        for served in engine.rankers.values():
            fold = served.fold
            for kind in ALERTS:
                alerts.add_metric(
                    [served.name, kind], (served.name, kind) in engine.housekeeping.alerts.active
                )
            difference = fold.trial.lift()
            for bound in () if difference is None else difference.__struct_fields__:
                lifts.add_metric([served.name, bound], getattr(difference, bound))
            for kind in fold.counts.__struct_fields__:
                counts.add_metric([served.name, kind], getattr(fold.counts, kind))
            values = (fold.applied, fold.rounds, sum(map(len, fold.parked.values())), served.snapshot_seq)
            for family, value in zip(families.values(), values, strict=True):
                family.add_metric([served.name], value)
            for measure in fold.estimates.measures:
                found = fold.estimates.value(measure)
                for bound in ("mean", "low", "high") if found is not None else ():
                    estimate.add_metric([served.name, measure, bound], getattr(found, bound))
        yield from (counts, *families.values(), estimate, alerts, lifts)


def exposition(engine: Engine) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(_Collector(engine))
    text: bytes = generate_latest(registry)
    return text
