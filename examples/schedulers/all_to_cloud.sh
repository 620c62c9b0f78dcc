#!/bin/sh
# A scheduler of edgecloud in POSIX shell and awk: every chunk of every job to the cloud at once.
#
#   hindsched simulate instance.json --algorithm "exec:sh examples/schedulers/all_to_cloud.sh"
#
# The messages are described in docs/reference/protocol.md. They are JSON in one line each, without spaces,
# with keys in the order of the instance file, so that patterns are enough to read them here. It
# takes for granted that the cloud has workers and parameter servers without end.

decide() {
    awk -v cloud="$cloud" '
    function number(text, key) {          # the number behind "key":
        if (!match(text, "\"" key "\":[-+.0-9eE]+")) return 0
        return substr(text, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
    }
    function whole(x) { return x == int(x) ? x : int(x) + 1 }
    function job_rows(text,    name, first, last, work, chunk, rows) {
        work = whole(number(text, "epochs") * number(text, "minibatches") \
                     * (number(text, "minibatch_slots") + number(text, "update_slots")))
        if (work < 1) work = 1
        first = number(text, "arrival") + number(text, cloud)
        last = first + work - 1
        for (chunk = 1; chunk <= number(text, "chunks"); chunk++)
            rows = rows "{\"chunk\":" chunk ",\"server\":\"" cloud "\",\"from\":" first \
                   ",\"to\":" last "},"
        name = substr(text, 1, index(text, "\",") - 1)
        return "\"" name "\":[" rows "{\"ps\":\"" cloud "\",\"from\":" first ",\"to\":" last "}]"
    }
    {
        jobs = substr($0, index($0, "\"arrivals\":["))
        count = split(substr(jobs, 1, index(jobs, "],\"events\"")), job, /\{"name":"/)
        for (i = 2; i <= count; i++) rows = rows (i > 2 ? "," : "") job_rows(job[i])
        print "{\"type\":\"decision\",\"assignments\":{" rows "}}"
    }'
}

while IFS= read -r message; do
    case $message in
    '{"type":"hello"'*) echo '{"type":"hello","protocol":1}' ;;
    '{"type":"start"'*)
        cloud=${message#*'"cloud":{"name":"'}
        cloud=${cloud%%'"'*}
        echo '{"type":"ready"}' ;;
    *'"arrivals":[]'*) echo '{"type":"decision"}' ;;
    *) printf '%s\n' "$message" | decide ;;
    esac
done
