from .model import VLLMModel as VLLMModel
