#include "cli/option_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "config/nearest_name.h"

namespace atl::cli {
namespace {

class CommandLineFaults {
  public:
    // A verb and the verb above it, or the program itself.
    void add_faults_of(CLI::App& app, const std::string& command) {
        area_ = app.get_parent() == nullptr ? command : command.substr(command.find(' ') + 1);
        command_ = command;
        const auto verbs = app.get_subcommands();  // chosen ones
        const std::size_t before = faults_.size();
        add_unknown(app);
        // What follows a word that wasn't understood may mean something else.
        if (faults_.size() > before && verbs.empty()) return add_values(app);
        if (faults_.size() > before && app.get_parent() == nullptr) return;
        add_values(app);
        add_missing(app);
        add_combinations(app);
        for (CLI::App* verb : verbs) add_faults_of(*verb, command + " " + verb->get_name());
    }
    std::vector<std::string> faults() && { return std::move(faults_); }

  private:
    void add(const std::string& fault) { faults_.push_back(fmt::format("[{}] {}", area_, fault)); }

    void add_unknown(const CLI::App& app) {
        std::string stray;  // word, the first
        bool has_unknown_option = false;
        for (const std::string& word : app.remaining()) {
            if (word.size() > 1 && word.front() == '-') {
                has_unknown_option = true;
                auto names = option_names(app);
                std::ranges::copy(verb_names(app), std::back_inserter(names));
                add_nearest(word.substr(0, word.find('=')), names);
            } else if (stray.empty()) {
                stray = word;
            }
        }
        if (stray.empty() || has_unknown_option) return;  // it may be that option's value
        const auto names = verb_names(app);
        if (!names.empty()) return add_nearest(stray, names);
        add(fmt::format("{}: one word too many ({} --help says what there is to say)", stray, command_));
    }
    void add_nearest(const std::string& word, const std::vector<std::string>& names) {
        add(fmt::format("{}: unknown; nearest: {} ({} --help lists them)", word, nearest_name(word, names),
                        command_));
    }

    void add_values(CLI::App& app) {
        for (CLI::Option* option : app.get_options()) {
            if (option->count() == 0) continue;
            try {
                option->run_callback();
            } catch (const CLI::ConversionError&) {
                add(fmt::format("{} {}: of the wrong type, must be {}", option->get_name(),
                                option->results().front(), option->get_type_name()));
            } catch (const CLI::Success&) {  // --help
            } catch (const CLI::ParseError& error) {
                add(error.what());
            }
        }
    }
    void add_missing(CLI::App& app) {
        for (const CLI::Option* option : app.get_options())
            if (option->get_required() && option->count() == 0)
                add(fmt::format("{} is required",
                                option->get_positional() ? option->get_type_name() : option->get_name()));
        if (app.get_require_subcommand_min() > 0 && app.get_subcommands().empty())
            add(fmt::format("one of {} is required ({} --help tells of them)",
                            fmt::join(verb_names(app), ", "), command_));
    }
    void add_combinations(CLI::App& app) {
        for (const CLI::Option* option : app.get_options()) {
            if (option->count() == 0) continue;
            for (const CLI::Option* needed : option->get_needs())
                if (needed->count() == 0)
                    add(fmt::format("{} needs {}", option->get_name(), needed->get_name()));
            for (const CLI::Option* other : option->get_excludes())
                if (other->count() > 0 && option->get_name() < other->get_name())
                    add(fmt::format("{} and {} exclude each other", option->get_name(), other->get_name()));
        }
    }

    static std::vector<std::string> option_names(const CLI::App& app) {
        std::vector<std::string> names;
        for (const CLI::Option* option : app.get_options())
            for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        return names;
    }
    static std::vector<std::string> verb_names(const CLI::App& app) {
        std::vector<std::string> names;
        for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
            names.push_back(verb->get_name());
        return names;
    }

    std::string area_, command_;
    std::vector<std::string> faults_;
};

}  // namespace

UserError explain(CLI::App& program, const CLI::ParseError& error) {
    // An option without its value: what was typed after it has not been looked at.
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        std::string area;
        for (CLI::App* verb = &program; !verb->get_subcommands().empty(); area += verb->get_name()) {
            verb = verb->get_subcommands().back();
            if (!area.empty()) area += ' ';
        }
        return UserError(fmt::format("[{}] {}", area.empty() ? program.get_name() : area, error.what()));
    }
    CommandLineFaults faults;
    faults.add_faults_of(program, program.get_name());
    auto found = std::move(faults).faults();
    if (found.empty()) found.push_back(fmt::format("[{}] {}", program.get_name(), error.what()));
    return UserError(std::move(found));
}

}  // namespace atl::cli
