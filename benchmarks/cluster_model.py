"""A discrete-event model of machines that work off the shards of one stage after another (`simulate_scale.py`).

A machine takes the next shard, works on it, waits for its turn at the place that all machines share (a database, the
driver, the servers of a release), and takes the next one. A machine that dies loses the shard it was at. Some time
later the shard is given to another machine, and a new machine takes the place of the dead one. The next stage begins
when all shards of this one are done.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import simpy

HOUR = 3600.0
IDLE = 0.4  # machines without a shard for this share of a stage wait for its last shards


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the pipeline.

    Attributes:
        name: What it does.
        shards: How many parts the work is cut into; none where the place works alone, for the time of one service.
        work: Seconds that a machine needs for one shard, by itself.
        place: What all machines share in this stage.
        service: Seconds that a shard takes there, after the work; the place serves one shard after the other.
        machine_price: Price of an hour of one machine in this stage.
        place_price: Price of an hour of the place.
    """

    name: str
    shards: int
    work: float
    place: str
    service: float
    machine_price: float = 0.0
    place_price: float = 0.0

    @property
    def hours_of_one(self) -> float:
        """Hours of one machine where nothing goes wrong."""
        return (self.shards * (self.work + self.service) if self.shards else self.service) / HOUR


@dataclass(frozen=True, slots=True)
class Conditions:
    """What goes wrong.

    Attributes:
        deaths_per_hour: How often a machine dies, in a Poisson process.
        detect: Seconds until the shard of a dead machine is given to another one.
        replace: Seconds until a new machine is there.
        spread: Standard deviation of the logarithm of a shard's work; the mean stays.
        slow_share: Share of machines that are slow for all their life.
        slow_factor: How much longer these take.
    """

    deaths_per_hour: float = 0.0
    detect: float = 60.0
    replace: float = 300.0
    spread: float = 0.0
    slow_share: float = 0.0
    slow_factor: float = 1.0


@dataclass(slots=True)
class StageResult:
    """What happened in a stage: times in hours, and how often each shard was done (once, if the model is right)."""

    stage: Stage
    machines: int
    hours: float = 0.0
    worked: float = 0.0  # by all machines, on shards that were done
    lost: float = 0.0  # by all machines, on shards that they did not finish
    at_place: float = 0.0  # by all machines, waiting for their turns included
    served: float = 0.0  # by the place
    deaths: int = 0
    done: list[int] = field(default_factory=list)

    @property
    def utilisation(self) -> float:
        """The share of the machines' time that went into work that counted."""
        return self.worked / (self.hours * self.machines)

    @property
    def held_back_by(self) -> str:
        """`machines`, the name of the place, or `last shards`."""
        occupied = (self.worked + self.lost + self.at_place) / (self.hours * self.machines)
        if occupied <= 1 - IDLE and self.served / self.hours <= 1 - IDLE:
            return "last shards"
        return self.stage.place if self.served / self.hours > self.utilisation else "machines"

    @property
    def cost(self) -> float:
        """The price of all machines and of the place for as long as the stage lasts."""
        return self.hours * (self.machines * self.stage.machine_price + self.stage.place_price)


def simulate(stages: Sequence[Stage], machines: int, conditions: Conditions, seed: int) -> list[StageResult]:
    """Runs all stages once, in order.

    Args:
        stages: The pipeline.
        machines: How many machines work at once.
        conditions: Failures and stragglers.
        seed: The same seed gives the same result. How long a shard takes depends on the seed only, not on the number
            of machines, so that runs can be compared.

    Returns:
        A result for each stage.
    """
    cluster = _Cluster(stages, machines, conditions, seed)
    cluster.env.run(until=cluster.env.process(cluster.stages_in_order()))
    for result in cluster.results:
        if any(times != 1 for times in result.done):
            raise AssertionError(f"{result.stage.name}: a shard was not done exactly once")
    return cluster.results


class _Cluster:
    def __init__(self, stages: Sequence[Stage], machines: int, conditions: Conditions, seed: int) -> None:
        self.env = simpy.Environment()
        self.conditions = conditions
        self.seed = seed
        self.results = [StageResult(stage, machines, done=[0] * stage.shards) for stage in stages]
        self.now_at = self.results[0]
        self.waiting: deque[int] = deque()
        self.lengths: list[float] = []
        self.left = 0
        self.all_done = self.env.event()
        self.more = self.env.event()
        for number in range(machines):
            self.env.process(self.lives(number))

    def stages_in_order(self) -> Iterator[simpy.Event]:
        for result in self.results:
            self.now_at, stage, begun = result, result.stage, self.env.now
            drawn = random.Random(f"{self.seed} {stage.name}")
            spread = self.conditions.spread
            self.lengths = [stage.work * drawn.lognormvariate(-(spread**2) / 2, spread) for _ in range(stage.shards)]
            self.place = simpy.Resource(self.env)
            self.left = stage.shards
            self.all_done = self.env.event()
            if stage.shards:
                self.offer(range(stage.shards))
                yield self.all_done
            else:
                yield self.env.timeout(stage.service)
                result.served = stage.service / HOUR
            result.hours = (self.env.now - begun) / HOUR

    def offer(self, shards: Sequence[int]) -> None:
        """Puts shards into the queue, and wakes the machines that wait for some."""
        self.waiting.extend(shards)
        self.more.succeed()
        self.more = self.env.event()

    def lives(self, number: int) -> Iterator[simpy.Event]:
        """One machine after the other in the same place: each works until it dies."""
        drawn, conditions = random.Random(f"{self.seed} machine {number}"), self.conditions
        while True:
            factor = conditions.slow_factor if drawn.random() < conditions.slow_share else 1.0
            working = self.env.process(self.work(factor))
            if not conditions.deaths_per_hour:
                yield working
            yield self.env.timeout(HOUR * drawn.expovariate(conditions.deaths_per_hour))
            working.interrupt()
            self.now_at.deaths += 1
            yield self.env.timeout(conditions.replace)

    def work(self, factor: float) -> Iterator[simpy.Event]:
        shard: int | None = None
        begun = self.env.now
        try:
            while True:
                while not self.waiting:
                    yield self.more
                shard, begun = self.waiting.popleft(), self.env.now
                yield self.env.timeout(self.lengths[shard] * factor)
                worked = self.env.now - begun
                yield from self.take_turn()
                self.now_at.worked += worked / HOUR
                self.now_at.at_place += (self.env.now - begun - worked) / HOUR
                self.finished(shard)
                shard = None
        except simpy.Interrupt:
            if shard is not None:
                self.now_at.lost += (self.env.now - begun) / HOUR
                self.env.process(self.give_back(shard))

    def take_turn(self) -> Iterator[simpy.Event]:
        """Waits for a turn at the place, and takes it."""
        result = self.now_at
        with self.place.request() as turn:
            yield turn
            begun = self.env.now
            try:
                yield self.env.timeout(result.stage.service)
            finally:
                result.served += (self.env.now - begun) / HOUR

    def finished(self, shard: int) -> None:
        self.now_at.done[shard] += 1
        self.left -= 1
        if not self.left:
            self.all_done.succeed()

    def give_back(self, shard: int) -> Iterator[simpy.Event]:
        yield self.env.timeout(self.conditions.detect)
        self.offer([shard])
