from .comparison_page import ComparisonReport as ComparisonReport
from .comparison_page import build_comparison as build_comparison
from .comparison_page import comparison_page as comparison_page
from .run_report import RunReport as RunReport
from .run_report import build_report as build_report
from .run_report import report_page as report_page
from .thumbnails import MEGABYTES as MEGABYTES
from .thumbnails import Thumbnails as Thumbnails
