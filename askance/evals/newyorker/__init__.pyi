from .reply_conventions import ConventionTask as ConventionTask
from .submission import Submission as Submission
from .submission import leaderboard_ids as leaderboard_ids
from .submission import submission_of as submission_of
