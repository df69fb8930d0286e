package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"strings"
)

func build(claim, settle string) *Scripts {
	managing := []string{when("adjust", adjust), when("apply", apply), when("status", status), when("repair", repair), when("align", queueTimes, align), when("swap", swap), when("movein", movein)}
	settling := []string{
		when("confirm", confirm, when("sold", sold)), when("release", release), when("doubt", doubt), when("expire", queueTimes, expire), when("return", giveBack),
		when("extend", extend), when("free", free), when("lookup", lookup), when("probe", probe, probed), when("sweep", sweep), when("lapse", lapse), when("forget", forget),
		when("acknowledge", acknowledge), when("merge", merge), when("rebuilt", rebuilt), when("outbox", outbox), when("sent", sent), when("mirror", mirror),
		when("examine", examine), when("delete", deleting),
		when("turn", turn), when("send", anew, send), when("again", anew, again), when("rejoin", rejoin), when("yield", anew, yield), when("orphans", orphans), when("leave", leave),
		when("line", line), when("place", place),
	}
	queued := whenSet("shard.queue or asked.turn or asked.send or asked.again or asked.rejoin or asked.yield or asked.orphans or asked.leave or asked.line or asked.place", queue)
	return &Scripts{
		Claim: script("claim", claim, shard, later("load_bindings", "bound_verdict, with_named", changes, bindings),
			later("load_unpaid", "parse_unpaid, unpaid_text, counting, prune", unpaid), later("load_dry_run", "dry_run", dryrun),
			later("load_queue", "for_reserve", queue, waits), reserve),
		Manage:  script("manage", claim, shard, asked, within(changes, bindings, unpaid, queued, states, strings.Join(managing, "\n"), flush, dispatch)),
		Settle:  script("settle", settle, shard, asked, within(changes, bindings, unpaid, queued, states, strings.Join(settling, "\n"), flush, dispatch)),
		List:    script("list", claim, list),
		Enroll:  script("enroll", claim, enroll),
		Rekey:   script("rekey", claim, rekey),
		Rate:    script("rate", claim, rate),
		Lease:   script("lease", claim, lease),
		Answer:  script("answer", claim, answer),
		Trim:    script("trim", settle, trim),
		Renew:   script("renew", claim, renew),
		Restore: script("restore", claim, restore),
		Fence:   script("fence", settle, shard, within(changes, bindings, unpaid, queue, states, flush, only("replay", replay), fence)),
	}
}

func script(name string, parts ...string) Script {
	source := numbered(strings.Join(parts, "\n"))
	sum := sha1.Sum([]byte(source))
	return Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

// when makes what files define only in calls that ask for an operation: for a call with
// a single one that is most of the work.
func when(operation string, files ...string) string {
	return "if asked['" + operation + "'] then\n" + strings.Join(files, "\n") + "\nend\n"
}

// whenSet makes what a file defines only in calls in which a condition holds. Its names are
// known in all calls.
func whenSet(condition, file string) string {
	var names []string
	file = globals.ReplaceAllStringFunc(file, func(line string) string {
		m := globals.FindStringSubmatch(line)
		names = append(names, m[2])
		switch {
		case m[1] != "":
			return "function " + m[2]
		case m[3] != "":
			return m[2] + m[3]
		}
		return "" // local name
	})
	return "local " + strings.Join(names, ", ") + "\nif " + condition + " then\n" + file + "\nend\n"
}

// only hides what a file defines, but for one function: Lua has room for 200 local variables.
func only(name, file string) string {
	return "local " + name + "\ndo\n" + strings.Replace(file, "local function "+name+"(", "function "+name+"(", 1) + "\nend\n"
}

// globals are the names that a file defines for those behind it, but for constants.
var globals = regexp.MustCompile(`(?m)^local (function )?([a-z_]+)( =)?`)

// within makes a function of files, and runs it. A function that is made finds the variables of
// the function around it among those of all functions that run, one after the other, but those
// further out at once.
func within(files ...string) string {
	return "return (function()\n" + strings.Join(files, "\n") + "\nend)()\n"
}

// later makes a function of files that not every call needs: it runs them and returns
// something that they define.
func later(name, returns string, files ...string) string {
	return "local function " + name + "()\n" + strings.Join(files, "\n") + "\nreturn " + returns + "\nend\n"
}

var constants = regexp.MustCompile(`^local ([A-Z_]+(?:, [A-Z_]+)*) = ([0-9e]+(?:, [0-9e]+)*)\n$`)

// numbered puts numbers in the place of their names. Lua has no constants: each function
// would look up, whenever it is made, every local variable that it names.
func numbered(source string) string {
	known := map[string]string{}
	var rest strings.Builder
	for line := range strings.Lines(source) {
		names := constants.FindStringSubmatch(line)
		if names == nil {
			rest.WriteString(line)
			continue
		}
		rest.WriteByte('\n') // errors of Lua name lines
		numbers := strings.Split(names[2], ", ")
		for i, name := range strings.Split(names[1], ", ") {
			known[name] = numbers[i]
		}
	}
	source = rest.String()
	var b strings.Builder
	for from := 0; from < len(source); {
		end := from + 1
		switch {
		case source[from] == '\'': // a text stays as it is
			if n := strings.IndexAny(source[end:], "'\n"); n >= 0 && source[end+n] == '\'' {
				end += n + 1
			}
		case inName(source[from]):
			for end < len(source) && inName(source[end]) {
				end++
			}
		}
		word := source[from:end]
		if number, ok := known[word]; ok {
			word = number
		}
		b.WriteString(word)
		from = end
	}
	return b.String()
}

// inName reports whether a name of Lua may have the byte in it.
func inName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
