"""Drop reasons: why a packet or an event was dropped, as one enumeration for all protocols and hosts.

The value of a reason is a stable word for tables; `sentence` says the same to people.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class DropReason(StrEnum):
    """Why something was dropped. `str(reason)` is the word that logs and tables hold."""

    sentence: str

    def __new__(cls, word: str, sentence: str) -> Self:
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.sentence = sentence
        return reason

    # Any protocol.
    EXPIRED = "expired", "The lifespan of the event had ended."
    HOP_LIMIT = "hop-limit", "The packet had reached its hop limit."
    NO_SUBSCRIBER = "no-subscriber", "No subscriber was known."
    NO_ROUTE = "no-route", "No route to the destination was known."
    UNREACHABLE = "unreachable", "The peer could not be reached."
    TOO_MANY_PACKETS_WAITING = "too-many-packets-waiting", "Too many packets were waiting to be sent."
    TOO_MANY_SOURCES = "too-many-sources", "The table of sources was full."
    ATTRIBUTES_DIFFER = "attributes-differ", "A publisher announces the type with other attributes than this node."
    MALFORMED_FILTER = "malformed-filter", "A peer sent a filter that cannot be parsed."
    MALFORMED_DOCUMENT = "malformed-document", "A peer sent a document that cannot be parsed."

    # Gossip.
    GOSSIP = "gossip", "The node chose at random not to pass the event on."

    # Contention-based forwarding.
    NOT_NEARER = "not-nearer", "The node was outside the event's area, and no nearer to it than the sender."
    PASSED_ON_BY_ANOTHER = "passed-on-by-another", "Another node had already passed the event on."

    # Hearsay.
    NOT_A_GATEWAY = "not-a-gateway", "An event was relayed by a node, or to one, that is not a gateway."

    # STEAM.
    ANNOUNCEMENT_CHANGED = "announcement-changed", "An announcement changed without a new number."
    ANNOUNCEMENT_IMPOSSIBLE_NUMBERS = "announcement-impossible-numbers", "An announcement held impossible numbers."
    ANNOUNCEMENT_INCOMPLETE = "announcement-incomplete", "An announcement had no subject or no valid producer."
    ANNOUNCEMENT_TOO_LONG = "announcement-too-long", "An announcement was too long."
    CONTENT_DIFFERS_FROM_TYPE = "content-differs-from-type", "The content differs from the announced event type."
    EVENT_ID_TOO_LONG = "event-id-too-long", "The id of the event was too long."
    GROUP_ID_COLLISION = "group-id-collision", "The event belongs to another type with the same group id."
    IMPOSSIBLE_TYPE = "impossible-type", "An announcement described an impossible event type."
    MISSED_NOT_RECOVERED = "missed-not-recovered", "An event was missed and could not be recovered."
    NOT_A_GROUP_MEMBER = "not-a-group-member", "The node is not a member of the event's group."
    NO_LONGER_ANNOUNCED = "no-longer-announced", "A peer asked for a type that is no longer announced."
    NO_LONGER_HELD = "no-longer-held", "A peer asked for an event that is no longer held."
    OUTSIDE_PROXIMITY = "outside-proximity", "The node was outside the event's proximity."
    PRODUCER_OUTSIDE_PROXIMITY = "producer-outside-proximity", "The producer was outside its own proximity."
    PROXIMITY_LIST_FULL = "proximity-list-full", "The list of proximities was full."
    RAISED_BEFORE_ARRIVAL = "raised-before-arrival", "The event was raised before this node entered its proximity."
    RECOVERED_TOO_LATE = "recovered-too-late", "The event was recovered after the node had left its group."
    REQUEST_MISROUTED = "request-misrouted", "A request for missed events reached the wrong node."
    REQUEST_TOO_LARGE = "request-too-large", "A peer asked for too many missed events."
    ROUTE_TO_CONSUMER_BROKEN = "route-to-consumer-broken", "The route back to the consumer was broken."
    ROUTE_TO_PRODUCER_BROKEN = "route-to-producer-broken", "The route to the producer was broken."
    NO_ROUTE_TO_PRODUCER = "no-route-to-producer", "No route to the producer was known."
    TOO_MANY_ANNOUNCEMENTS = "too-many-announcements", "One producer announced too many types."

    # GeoRendezvous.
    RECEIVER_MOVED = "receiver-moved", "The receiver had left the cell."
    UNKNOWN_TOPIC = "unknown-topic", "The rendezvous cell knows no such topic."

    # Content-based ODMRP.
    MALFORMED_DIGEST = "malformed-digest", "A peer sent a digest that cannot be decoded."
    MALFORMED_SUMMARY = "malformed-summary", "A peer sent a summary that cannot be decoded."
    NEXT_HOP_UNREACHABLE = "next-hop-unreachable", "The next hop towards the source could not be reached."
    UNKNOWN_CHANNEL = "unknown-channel", "A Join Table named a channel that is not known."
    UNKNOWN_SOURCE = "unknown-source", "A Join Table named a source that is not known."

    # CoDD and Siena.
    CYCLE = "cycle", "A join would have made a cycle in the tree."
    JOIN_FAILED = "join-failed", "No node of the tree accepted the join."
    NO_AGENT_ANSWERS = "no-agent-answers", "No system agent answered."
    NO_CONTROL = "no-control", "The central control did not answer."
    NOT_AN_AGENT = "not-an-agent", "The node is not a system agent."
    NOT_CONNECTED = "not-connected", "The node was not connected to a broker."
    NOT_IN_TREE = "not-in-tree", "The node was not part of the tree."
    NOT_REGISTERED = "not-registered", "The source is not registered."
    NOT_THE_SOURCE = "not-the-source", "The node is not the source of the tree."

    # DRIP.
    BROKER_MEMORY = "broker-memory", "The broker's memory was full."
    EXPIRED_WITH_DESTINATIONS_LEFT = "expired-with-destinations-left", "The event expired before all brokers had it."
    NO_LONGER_A_BROKER = "no-longer-a-broker", "The node stopped being a broker while it held the event."
    NO_RETURN_ROUTE = "no-return-route", "A packet arrived without the route it came by."
    NOT_A_BROKER = "not-a-broker", "The packet was meant for a broker, and the node is not one."
    TOO_MANY_EVENTS_WAITING = "too-many-events-waiting", "Too many events were waiting for a broker."

    # The simulator.
    COLLISION = "collision", "Two transmissions collided at the receiver."
    FADED = "faded", "The signal was too weak."
    LOST = "lost", "The network lost the packet."
    PACKET_TOO_LARGE = "packet-too-large", "The packet was larger than the network carries."
    PUBLISHER_AWAY = "publisher-away", "The publisher was away or down."
    QUEUE_FULL = "queue-full", "The send queue was full."
    RETRY_LIMIT = "retry-limit", "Every attempt to send the packet failed."
    SILENT_NODE = "silent-node", "The node is silent: it passes no events on."

    # Live nodes.
    DUPLICATE_DATAGRAM = "duplicate-datagram", "The datagram had arrived before."
    FORGED_SENDER = "forged-sender", "The datagram used the name of another sender."
    FRAGMENT_BUFFER_FULL = "fragment-buffer-full", "Too many packets were waiting for their fragments."
    FRAGMENTS_MISSING = "fragments-missing", "Some fragments of the packet did not arrive in time."
    HANDLER_FAILURE = "handler-failure", "The application's handler raised an exception."
    KEY_EXPIRED = "key-expired", "The key or certificate of the signer had expired."
    KEY_REVOKED = "key-revoked", "The key of the signer had been revoked."
    MACHINE_FAILURE = "machine-failure", "The protocol raised an exception."
    MALFORMED = "malformed", "The datagram or packet could not be decoded."
    NOT_A_DATAGRAM = "not-a-datagram", "The bytes are not one of our datagrams."
    NOT_FOR_US = "not-for-us", "The datagram was addressed to another node."
    NOT_PROVEN = "not-proven", "The sender had not answered a challenge, and the protocol needs two-way links."
    NOT_SEALED = "not-sealed", "The datagram was not sealed, and this network has a key."
    NOT_SIGNED = "not-signed", "The event or hello was not signed, and its sender must sign."
    OTHER_PLANE = "other-plane", "The sender measures positions on another plane."
    OUT_OF_MEMORY = "out-of-memory", "The node held as many bytes of events and packets as it may."
    OUT_OF_RANGE = "out-of-range", "The sender was beyond the emulated range."
    OWN_NAME = "own-name", "Another node uses the name of this node."
    RATE_LIMIT = "rate-limit", "The sender sent more than its rate limit allows."
    RECEIVE_FAILED = "receive-failed", "The socket failed to receive."
    SEALED = "sealed", "The datagram was sealed, and this network has no key."
    SEND_BUFFER_FULL = "send-buffer-full", "The socket's send buffer was full."
    SEND_FAILED = "send-failed", "The socket failed to send."
    SLOW_SUBSCRIBER = "slow-subscriber", "The application read its events too slowly."
    SPOOL_NOT_WRITTEN = "spool-not-written", "The record could not be written to the spool."
    STALE_DATAGRAM = "stale-datagram", "The datagram was too old."
    TOO_MANY_TIMERS = "too-many-timers", "The protocol asked for too many timers."
    UNKNOWN_SIGNER = "unknown-signer", "The signer is not in the trust file, and no trusted owner certified it."
    WRONG_KEY = "wrong-key", "The datagram was sealed with a key this network does not have."
    WRONG_SIGNATURE = "wrong-signature", "The signature was not made by the key of the name, or not for this content."


def sentence_of(word: str) -> str:
    """What a drop reason means, for people; the word itself where this version does not know it."""
    return _SENTENCES.get(word, word)


_SENTENCES = {reason.value: reason.sentence for reason in DropReason}
