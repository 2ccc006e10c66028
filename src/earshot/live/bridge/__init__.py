"""The bridge: events of a network to the topics of an MQTT broker, and messages of the broker to the network.

Start with `mapping` (which events become which messages, and back), then `bridge` (both directions, without
losing any), `mqtt` (the connection to the broker) and `waiting_messages` (the queue on disk).
"""

from earshot.live.bridge.bridge import Bridge
from earshot.live.bridge.mapping import FromMqtt, Mapping, ToMqtt, read_mapping
from earshot.live.bridge.mqtt import MqttBroker

__all__ = ["Bridge", "FromMqtt", "Mapping", "MqttBroker", "ToMqtt", "read_mapping"]
