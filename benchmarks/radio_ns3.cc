// The traffic of benchmarks/radio.py in ns-3: 802.11 ad hoc, straight over the network device.
// Usage: radio_ns3 TRAJECTORIES REQUESTS floods|unicasts RADIO RULE RANGE_M BYTES JITTER_S QUEUE DURATION_S SEED M N
// TRAJECTORIES: "node time x y" a line, in order. REQUESTS: "time node peer" a line; the peer of a flood is -1.
// RADIO: 802.11p-6M, 802.11b-11M or 802.11b-2M, with ns-3's own figures.
// RULE: `overlap`: a frame that another one overlaps at its receiver is lost; `own`: as ns-3's own model of errors
// says; `capture`: so, and a frame that is 5 dB stronger is read instead of one whose preamble is still being read.
// M: 0: every node in range; else Nakagami fading with this m, and mean strength by the path loss exponent N.
// Prints one JSON object.
#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

static const uint16_t PROTOCOL = 0x88b5;
static NetDeviceContainer devices;
static std::vector<Ptr<WaypointMobilityModel>> models;
static std::vector<double> requested_at;
static std::vector<std::set<uint32_t>> heard;
static std::vector<double> latencies;
static uint64_t requests = 0, sends = 0, in_range = 0, receptions = 0;
static uint32_t bytes;
static double jitter, range;
static bool floods;
static Ptr<UniformRandomVariable> chance;
static std::string radio;
static std::vector<std::deque<std::pair<double, double>>> arrivals;  // of each node: from when to when
static const double TX_DBM = 20.0, SENSITIVITY_DBM = -75.0;  // 22 dB above the noise: it costs no frame
static double least_dbm;
static double on_air_until;  // of the frame that begins now, and whether it is a data frame
static bool on_air_data;

static double AirtimeS(uint32_t frame_bytes) {
  if (radio == "802.11p-6M") return 40e-6 + 8e-6 * std::ceil((22 + 8 * frame_bytes) / 48.0);
  return 192e-6 + frame_bytes * 8 / (radio == "802.11b-11M" ? 11e6 : 2e6);
}

// Loses the frame that ends now if another one was there between its beginning and its end.
class Overlaps : public ErrorModel {
 public:
  explicit Overlaps(uint32_t node) : node_(node) {}

 private:
  bool DoCorrupt(Ptr<Packet>) override {
    const double now = Simulator::Now().GetSeconds();
    for (const auto& one : arrivals[node_]) {
      if (std::abs(one.second - now) > 3e-6) continue;
      for (const auto& other : arrivals[node_])
        if (&other != &one && other.first < one.second && other.second > one.first) return true;
    }
    return false;
  }
  void DoReset() override {}
  uint32_t node_;
};

static void Transmit(uint32_t node, uint32_t number, int32_t peer) {
  std::vector<uint8_t> data(bytes, 0);
  std::memcpy(data.data(), &number, sizeof number);
  Ptr<NetDevice> device = devices.Get(node);
  Address to = peer < 0 ? device->GetBroadcast() : devices.Get(peer)->GetAddress();
  device->Send(Create<Packet>(data.data(), bytes), to, PROTOCOL);
  ++requests;
}

static bool Receive(uint32_t node, Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&) {
  uint32_t number;
  packet->CopyData(reinterpret_cast<uint8_t*>(&number), sizeof number);
  ++receptions;
  if (heard[node].insert(number).second) {
    latencies.push_back(Simulator::Now().GetSeconds() - requested_at[number]);
    if (floods) Simulator::Schedule(Seconds(chance->GetValue(0.0, jitter)), &Transmit, node, number, -1);
  }
  return true;
}

static void Request(uint32_t node, uint32_t number, int32_t peer) {
  heard[node].insert(number);
  Transmit(node, number, peer);
}

static void Begin(uint32_t, Ptr<const Packet> packet, double) {
  WifiMacHeader header;
  packet->PeekHeader(header);
  on_air_data = header.IsData();
  if (on_air_data) ++sends;
  on_air_until = Simulator::Now().GetSeconds() + AirtimeS(packet->GetSize());
}

// The last model of propagation: changes nothing, and notes which frames arrive strongly enough.
class Arrivals : public PropagationLossModel {
 private:
  double DoCalcRxPower(double dbm, Ptr<MobilityModel>, Ptr<MobilityModel> receiver) const override {
    if (dbm < least_dbm) return dbm;
    const uint32_t i = receiver->GetObject<Node>()->GetId();
    const double now = Simulator::Now().GetSeconds();
    if (on_air_data) ++in_range;
    while (!arrivals[i].empty() && arrivals[i].front().first < now - 0.05) arrivals[i].pop_front();
    arrivals[i].push_back({now, on_air_until});
    return dbm;
  }
  int64_t DoAssignStreams(int64_t) override { return 0; }
};

int main(int, char** argv) {
  floods = std::string(argv[3]) == "floods";
  radio = argv[4];
  const std::string rule = argv[5];
  range = std::stod(argv[6]);
  bytes = std::stoul(argv[7]);
  jitter = std::stod(argv[8]);
  Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue(std::string(argv[9]) + "p"));
  Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000)));  // a frame never grows too old to send
  const double duration = std::stod(argv[10]);
  RngSeedManager::SetRun(1 + std::stoul(argv[11]));
  chance = CreateObject<UniformRandomVariable>();

  std::ifstream trajectories(argv[1]);
  uint32_t node;
  double time, x, y;
  while (trajectories >> node >> time >> x >> y) {
    if (node >= models.size()) models.push_back(CreateObject<WaypointMobilityModel>());
    models[node]->AddWaypoint(Waypoint(Seconds(time), Vector(x, y, 0.0)));
  }
  NodeContainer nodes;
  nodes.Create(models.size());
  heard.resize(models.size());
  arrivals.resize(models.size());
  for (uint32_t i = 0; i < models.size(); ++i) nodes.Get(i)->AggregateObject(models[i]);

  YansWifiChannelHelper channel;
  channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
  YansWifiPhyHelper phy;
  phy.SetErrorRateModel("ns3::NistErrorRateModel");
  Ptr<PropagationLossModel> loss;
  const double m = std::stod(argv[12]), exponent = std::stod(argv[13]);
  if (m == 0) {
    loss = CreateObjectWithAttributes<RangePropagationLossModel>("MaxRange", DoubleValue(range));
    least_dbm = -500;
  } else {
    const double at_1_m = TX_DBM - SENSITIVITY_DBM - 10 * exponent * std::log10(range);
    loss = CreateObjectWithAttributes<LogDistancePropagationLossModel>("Exponent", DoubleValue(exponent),
                                                                       "ReferenceLoss", DoubleValue(at_1_m));
    loss->SetNext(CreateObjectWithAttributes<NakagamiPropagationLossModel>("m0", DoubleValue(m), "m1", DoubleValue(m),
                                                                           "m2", DoubleValue(m)));
    least_dbm = SENSITIVITY_DBM;
    phy.Set("TxPowerStart", DoubleValue(TX_DBM));
    phy.Set("TxPowerEnd", DoubleValue(TX_DBM));
    phy.Set("RxSensitivity", DoubleValue(SENSITIVITY_DBM - 10 * std::log10(0.5)));  // ns-3's is for 20 MHz, ours has 10
    phy.Set("CcaEdThreshold", DoubleValue(SENSITIVITY_DBM));
    phy.DisablePreambleDetectionModel();
  }
  if (rule == "capture")
    phy.SetFrameCaptureModel("ns3::SimpleFrameCaptureModel", "Margin", DoubleValue(5.0), "CaptureWindow",
                             TimeValue(MicroSeconds(40)));
  (loss->GetNext() ? loss->GetNext() : loss)->SetNext(CreateObject<Arrivals>());
  Ptr<YansWifiChannel> air = channel.Create();
  air->SetPropagationLossModel(loss);
  phy.SetChannel(air);
  if (radio == "802.11p-6M") phy.Set("ChannelSettings", StringValue("{0, 10, BAND_5GHZ, 0}"));
  WifiMacHelper mac;
  mac.SetType("ns3::AdhocWifiMac");
  WifiHelper wifi;
  wifi.SetStandard(radio == "802.11p-6M" ? WIFI_STANDARD_80211p : WIFI_STANDARD_80211b);
  const std::string mode = radio == "802.11p-6M"    ? "OfdmRate6MbpsBW10MHz"
                           : radio == "802.11b-11M" ? "DsssRate11Mbps"
                                                    : "DsssRate2Mbps";
  wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(mode), "NonUnicastMode",
                               StringValue(mode), "ControlMode", StringValue(mode));
  devices = wifi.Install(phy, mac, nodes);
  for (uint32_t i = 0; i < devices.GetN(); ++i) {
    devices.Get(i)->SetReceiveCallback(MakeBoundCallback(&Receive, i));
    Ptr<WifiNetDevice> device = DynamicCast<WifiNetDevice>(devices.Get(i));
    if (rule == "overlap") device->GetPhy()->SetPostReceptionErrorModel(CreateObject<Overlaps>(i));
    device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeBoundCallback(&Begin, i));
  }

  std::ifstream list(argv[2]);
  int32_t peer;
  while (list >> time >> node >> peer) {
    Simulator::Schedule(Seconds(time), &Request, node, uint32_t(requested_at.size()), peer);
    requested_at.push_back(time);
  }
  Simulator::Stop(Seconds(duration));
  Simulator::Run();
  uint64_t waiting = 0;
  for (uint32_t i = 0; i < devices.GetN(); ++i) {
    Ptr<WifiNetDevice> device = DynamicCast<WifiNetDevice>(devices.Get(i));
    waiting += device->GetMac()->GetTxop()->GetWifiMacQueue()->GetNPackets();
  }
  std::cout.precision(9);
  std::cout << "{\"requests\": " << requests << ", \"sends\": " << sends << ", \"in_range\": " << in_range
            << ", \"receptions\": " << receptions << ", \"waiting\": " << waiting << ", \"latencies_s\": [";
  for (size_t i = 0; i < latencies.size(); ++i) std::cout << (i ? "," : "") << latencies[i];
  std::cout << "]}" << std::endl;
  Simulator::Destroy();
  return 0;
}
