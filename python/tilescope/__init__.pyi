from ._program import SimulationError as SimulationError
from ._program import SpecError as SpecError
from ._report import Comparison as Comparison
from ._report import Picture as Picture
from ._report import Report as Report
from ._report import Violation as Violation
from ._report import open as open
from ._simulate import simulate as simulate
from ._sweep import sweep as sweep
from ._table import Table as Table
from ._tilescope import QueryError as QueryError
from ._tilescope import ReportError as ReportError

__all__: list[str]
