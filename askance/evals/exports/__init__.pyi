from .formats import FORMS as FORMS
from .formats import Form as Form
from .formats import export as export
from .formats import to_pandas as to_pandas
from .frames import pandas_frame as pandas_frame
from .frames import polars_frame as polars_frame
