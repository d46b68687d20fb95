#include "rounds/types.h"

#include "core/check.h"

namespace atl {

std::string_view name(Phase phase) {
    switch (phase) {
        case Phase::starting:
            return "starting";
        case Phase::loading:
            return "loading";
        case Phase::ready:
            return "ready";
        case Phase::training:
            return "training";
        case Phase::exchanging:
            return "exchanging";
        case Phase::holding:
            return "holding";
        case Phase::applying:
            return "applying";
        case Phase::finished:
            return "finished";
    }
    ATOLL_CHECK(false, "phase {}", int(phase));
}

std::string_view name(Standing standing) {
    switch (standing) {
        case Standing::joining:
            return "joining";
        case Standing::active:
            return "active";
        case Standing::suspect:
            return "suspect";
        case Standing::lost:
            return "lost";
        case Standing::silent:
            return "silent";
        case Standing::left:
            return "left";
        case Standing::refused:
            return "refused";
    }
    ATOLL_CHECK(false, "standing {}", int(standing));
}

std::int64_t block_count(const std::vector<BlockRange>& ranges) {
    std::int64_t count = 0;
    for (const BlockRange& range : ranges) count += range.count;
    return count;
}

}  // namespace atl
