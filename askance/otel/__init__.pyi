from .span_collector import SpanCollector as SpanCollector
from .span_switch import send_spans as send_spans
from .span_switch import spans_asked as spans_asked
from .span_tracer import SpanTracer as SpanTracer
