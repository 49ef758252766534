from .table import CASSETTE as CASSETTE
from .table import ENTRIES as ENTRIES
from .table import FOLDER as FOLDER
from .table import NAME as NAME
from .table import PICTURES as PICTURES
from .table import TABLE as TABLE
from .table import DemoPicture as DemoPicture
from .table import read_table as read_table
