from .vllm_model import VLLMModel as VLLMModel
