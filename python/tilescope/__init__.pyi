from ._commands import COMMANDS as COMMANDS
from ._commands import bisect as bisect
from ._commands import convert as convert
from ._commands import keys as keys
from ._commands import model as model
from ._commands import onnx as onnx
from ._commands import reproduce as reproduce
from ._commands import sensitivity as sensitivity
from ._commands import series as series
from ._commands import specs as specs
from ._commands import tune as tune
from ._commands import validate as validate
from ._picture import Picture as Picture
from ._plot import Plot as Plot
from ._program import SimulationError as SimulationError
from ._program import SpecError as SpecError
from ._report import Comparison as Comparison
from ._report import Report as Report
from ._report import Violation as Violation
from ._report import open as open
from ._simulate import simulate as simulate
from ._sweep import sweep as sweep
from ._table import Table as Table
from ._tilescope import QueryError as QueryError
from ._tilescope import ReportError as ReportError

__all__: list[str]
__version__: str
