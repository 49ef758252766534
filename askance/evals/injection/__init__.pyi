from .attacks import Attack as Attack
from .attacks import read_attacks as read_attacks
from .orders import InjectedOrders as InjectedOrders
