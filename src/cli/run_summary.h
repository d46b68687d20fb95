// The summary of a run from those of its sites on this machine: what equals everywhere is taken over, bytes and
// tokens are summed, times are the slowest site's.
//
// Errors: StorageError or CorruptDataError for a summary that can't be read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/file_system.h"

namespace atl::cli {

struct RunSummary {
    std::string json;          // the text of summary.json
    std::string table;         // for people, several lines
    bool hashes_equal = true;  // parameters_blake2b of all sites that took a step
    bool trained = false;      // one of them did
    int sites_reporting = 0;   // that wrote a summary
};

// Reads RUN_DIRECTORY/summaries/SITE.json of each site; sites that wrote none are named in the table.
RunSummary summarize_run(const FileSystem& files, const std::filesystem::path& run_directory,
                         const std::vector<std::string>& sites);

}  // namespace atl::cli
