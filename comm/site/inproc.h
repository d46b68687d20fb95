// Sites of one process joined by queues: for tests of what happens above the wire, with real threads.
//
// Ownership: transports may outlive the network object's creator but not the network. Threads: any.
#pragma once

#include <memory>

#include "comm/site/transport.h"

namespace atl {

class InprocNetwork {
  public:
    InprocNetwork();
    ~InprocNetwork();

    // Destroying a transport is the death of its site: peers see `lost` at once.
    std::unique_ptr<SiteTransport> join(TransportOptions options);
    // Both sides see `lost`; frames between them vanish until `heal`.
    void cut(SiteId one, SiteId other);
    void heal(SiteId one, SiteId other);

  private:
    class Hub;
    class Transport;
    std::shared_ptr<Hub> hub_;  // shared with the transports, which deliver through it
};

}  // namespace atl
