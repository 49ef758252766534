from .corpus_plan import Assumptions as Assumptions
from .corpus_plan import CorpusPlan as CorpusPlan
from .corpus_plan import PlanRow as PlanRow
from .corpus_plan import Projection as Projection
from .corpus_plan import plan_corpus as plan_corpus
