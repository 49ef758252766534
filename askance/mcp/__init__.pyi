from .account import Account as Account
from .mcp_server import picture_server as picture_server
from .mcp_server import serve_http as serve_http
from .mcp_server import serve_stdio as serve_stdio
from .shared_folders import SharedFolders as SharedFolders
from .tokens import Tokens as Tokens
