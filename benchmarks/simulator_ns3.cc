// The floods of benchmarks/simulator.py in ns-3: 802.11b ad hoc, straight over the network device.
// Usage: simulator_ns3 WAYPOINTS FLOODS RANGE_M BYTES JITTER_S DURATION_S
// WAYPOINTS: "node time x y" a line, in order. FLOODS: "time node" a line. Prints sends and receipts.
#include <cstring>
#include <fstream>
#include <iostream>
#include <set>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

static const uint16_t PROTOCOL = 0x88b5;
static NetDeviceContainer devices;
static std::vector<std::set<uint32_t>> heard;
static uint64_t sends = 0, receipts = 0;
static uint32_t bytes;
static double jitter;
static Ptr<UniformRandomVariable> chance;

static void Transmit(uint32_t node, uint32_t flood) {
  std::vector<uint8_t> data(bytes, 0);
  std::memcpy(data.data(), &flood, sizeof flood);
  Ptr<NetDevice> device = devices.Get(node);
  device->Send(Create<Packet>(data.data(), bytes), device->GetBroadcast(), PROTOCOL);
  ++sends;
}

static bool Receive(uint32_t node, Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&) {
  uint32_t flood;
  packet->CopyData(reinterpret_cast<uint8_t*>(&flood), sizeof flood);
  ++receipts;
  if (heard[node].insert(flood).second)
    Simulator::Schedule(Seconds(chance->GetValue(0.0, jitter)), &Transmit, node, flood);
  return true;
}

static void Publish(uint32_t node, uint32_t flood) {
  heard[node].insert(flood);
  Transmit(node, flood);
}

int main(int, char** argv) {
  const double range = std::stod(argv[3]), duration = std::stod(argv[6]);
  bytes = std::stoul(argv[4]);
  jitter = std::stod(argv[5]);
  chance = CreateObject<UniformRandomVariable>();

  std::ifstream ways(argv[1]);
  std::vector<Ptr<WaypointMobilityModel>> models;
  uint32_t node;
  double time, x, y;
  while (ways >> node >> time >> x >> y) {
    if (node >= models.size()) models.push_back(CreateObject<WaypointMobilityModel>());
    models[node]->AddWaypoint(Waypoint(Seconds(time), Vector(x, y, 0.0)));
  }
  NodeContainer nodes;
  nodes.Create(models.size());
  heard.resize(models.size());
  for (uint32_t i = 0; i < models.size(); ++i) nodes.Get(i)->AggregateObject(models[i]);

  YansWifiChannelHelper channel;
  channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
  channel.AddPropagationLoss("ns3::RangePropagationLossModel", "MaxRange", DoubleValue(range));
  YansWifiPhyHelper phy;
  phy.SetChannel(channel.Create());
  WifiMacHelper mac;
  mac.SetType("ns3::AdhocWifiMac");
  WifiHelper wifi;
  wifi.SetStandard(WIFI_STANDARD_80211b);
  wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("DsssRate11Mbps"),
                               "NonUnicastMode", StringValue("DsssRate11Mbps"));
  devices = wifi.Install(phy, mac, nodes);
  for (uint32_t i = 0; i < devices.GetN(); ++i)
    devices.Get(i)->SetReceiveCallback(MakeBoundCallback(&Receive, i));

  std::ifstream floods(argv[2]);
  uint32_t flood = 0;
  while (floods >> time >> node) Simulator::Schedule(Seconds(time), &Publish, node, flood++);
  Simulator::Stop(Seconds(duration));
  Simulator::Run();
  std::cout << sends << " " << receipts << std::endl;
  Simulator::Destroy();
  return 0;
}
