from .dataset import Sherlock as Sherlock
from .instance import Box as Box
from .instance import Instance as Instance
from .leaderboard import Leaderboard as Leaderboard
from .leaderboard import PairGroup as PairGroup
from .leaderboard import RatedInference as RatedInference
from .leaderboard import RatedRegion as RatedRegion
