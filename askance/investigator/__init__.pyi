from .look import Look as Look
from .look import LookStep as LookStep
from .look import LookTool as LookTool
