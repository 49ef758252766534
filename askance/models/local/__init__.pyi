from .hf import HFModel as HFModel
