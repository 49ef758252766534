from .training_set import ChatExample as ChatExample
from .training_set import ChoiceExample as ChoiceExample
from .training_set import Example as Example
from .training_set import PairExample as PairExample
from .training_set import Source as Source
from .training_set import TextExample as TextExample
from .training_set import TrainingSet as TrainingSet
from .training_set import write_training_set as write_training_set
