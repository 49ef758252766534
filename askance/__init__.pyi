from .atypicality import Statement as Statement
from .chains import Chain as Chain
from .chains import Link as Link
from .chains import Reading as Reading
from .chains import Step as Step
from .chains import action_reason as action_reason
from .chains import end_to_end as end_to_end
from .chains import explain as explain
from .chains import identify as identify
from .chains import verbalize as verbalize
from .evals import Run as Run
from .evals import Sample as Sample
from .evals import Task as Task
from .evals import compare as compare
from .evals import evaluate as evaluate
from .evals import find_task as find_task
from .images import Image as Image
from .models import Engine as Engine
from .models import get_model as get_model

__version__: str
