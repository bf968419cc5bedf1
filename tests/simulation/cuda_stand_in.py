import numpy as np, time, sys
from rankloop import rankers, environments, simulation
from rankloop.simulation import cuda as C
from rankloop.simulation.play import begin


class Local:
    @staticmethod
    def array(shape, dtype):
        return np.empty(shape, dtype)


class Fake:
    local = Local()

    def __init__(self):
        self.run = 0

    def grid(self, n):
        return self.run


def play(runs):
    for program, group in C.grouped(runs):
        fake = Fake()
        b = C.Batch(program, group)
        f = program.function(fake, lambda k: k, C.word)
        with np.errstate(all="ignore"):
            left = group[0].rounds
            while left:
                n = min(left, 37)
                for i in range(len(group)):
                    fake.run = i
                    f(n, *b.arrays)
                left -= n
        b.hand_over(0.0)


def check(make_r, make_e, rounds=100):
    ref = [simulation.play(make_r(), make_e(), rounds=rounds, seed=s, points=7) for s in (1, 2)]
    runs = [begin(make_r(), make_e(), rounds, s, 7, None) for s in (1, 2)]
    play(runs)
    for a, r in zip(ref, runs):
        b = r.trace()
        for f in ("value", "total", "regret", "explored"):
            x, y = getattr(a, f), getattr(b, f)
            assert x.tobytes() == y.tobytes(), (f, x, y)
    return runs


users = lambda: environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
clicks = lambda: environments.named("gap-0.03")
if __name__ == "__main__":
    for name in ("RTop1F", "TopFTRL", "FTPL", "PEGE"):
        kind = getattr(rankers, name)
        h = {} if name in ("TopFTRL", "PEGE") else {"horizon": 100}
        check(lambda: kind(n_items=10, measure="dcg", **h), users)
        print(name, "ok")
    for name in ("FTRLPBM", "TopRank", "PBMTS", "GRAB", "MW", "RankedExp3"):
        kind = getattr(rankers, name)
        h = {"horizon": 100} if name in ("TopRank", "MW", "RankedExp3") else {}
        check(lambda: kind(n_items=10, n_positions=5, **h), clicks)
        print(name, "ok")
