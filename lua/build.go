package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"strings"
)

// build puts the scripts together, from an entry of the table of operations and a file for each:
//
//  1. first is their first line for Redis 7 and Valkey, "#!lua"; firstOOM, with flags=allow-oom, begins
//     the scripts that may run on a full Redis.
//  2. Operations, and parts such as bound keys, unpaid holds, queue and waiting list, are made only in calls
//     that need them, because Redis runs a script from its first line each time. Without this a confirm
//     takes 21 % more time.
//  3. Constants become numbers, because Lua 5.1 would capture them in every function: worth 7.6 % of a
//     confirm. A line "local NAME = 1" is removed, and the number stands where the name stood. Names are
//     capitals with "_", without a comment behind the number.
//
// A file sees the names of the files before it in its script. Lines "-- uses changes.lua: read_record, …" say
// which it takes; go test ./lua -run TestUses -update writes them. No script has a large number as an array
// index: the embedded server would allocate up to it.
func build(first, firstOOM string) *Scripts {
	s := new(Scripts)
	for _, o := range operations {
		if !o.Shared() {
			s.all[o.Script].Source = file(o.Name)
		}
	}
	changes, bindings, unpaid, queue, waitlist := file("changes"), file("bindings"), file("unpaid"), file("queue"), file("waitlist")
	states, flush, shard := file("states"), file("flush"), file("shard")
	s.all[claim].Source = strings.Join([]string{shard, later("load_bindings", "bound_verdict, with_named", changes, bindings),
		later("load_unpaid", "parse_unpaid, unpaid_text, counting, prune", unpaid), later("load_dry_run", "dry_run", file("dryrun")),
		later("load_queue", "for_reserve", queue, file("waits")), file("verdicts"), s.all[claim].Source}, "\n")
	queued := whenSet("shard.queue"+asking(func(o *Operation) bool { return o.queue }), queue)
	listed := whenSet("shard.waitlist"+asking(func(o *Operation) bool { return o.waitlist }), waitlist)
	for _, k := range []Kind{manage, settle} {
		s.all[k].Source = strings.Join([]string{shard, file("asked"), within(changes, bindings, unpaid, queued, listed, states, judging(k), made(k), flush, file("dispatch"))}, "\n")
	}
	s.all[fence].Source = strings.Join([]string{shard, within(changes, bindings, unpaid, queue, waitlist, states, flush, only("replay", file("replay")), only("note_silent", file("silent")), within(s.all[fence].Source))}, "\n")
	for k := range kinds {
		line := first
		if k.oom() {
			line = firstOOM
		}
		s.all[k] = script(k.String(), line+"\n"+s.all[k].Source)
	}
	return s
}

func script(name, source string) Script {
	source = numbered(source)
	sum := sha1.Sum([]byte(source))
	return Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

// made makes the operations of a script, each only in calls that ask for it.
func made(k Kind) string {
	var blocks []string
	for _, o := range operations {
		if o.Script == k && o.inside == nil {
			blocks = append(blocks, when(o.Name, block(o)...))
		}
	}
	return strings.Join(blocks, "\n")
}

// judging makes what judges an attempt, for operations that take one.
func judging(k Kind) string {
	if condition := asking(func(o *Operation) bool { return o.Script == k && o.judges }); condition != "" {
		return whenSet(strings.TrimPrefix(condition, " or "), file("verdicts")+"\n"+file("instead"))
	}
	return ""
}

// block is the text of an operation, with what it needs before it and what is made with it behind it.
func block(o *Operation) []string {
	var texts []string
	for _, name := range o.before {
		texts = append(texts, file(name))
	}
	texts = append(texts, file(o.Name))
	for _, with := range operations {
		switch {
		case with.inside != o:
		case with.ifAsked:
			texts = append(texts, when(with.Name, file(with.Name)))
		default:
			texts = append(texts, file(with.Name))
		}
	}
	return texts
}

// asking is the condition that a call asks for one of some operations.
func asking(one func(*Operation) bool) string {
	var b strings.Builder
	for _, o := range operations {
		if one(o) {
			b.WriteString(" or asked." + o.Name)
		}
	}
	return b.String()
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
	rest.Grow(len(source))
	for line := range strings.Lines(source) {
		var names []string
		if strings.HasPrefix(line, "local ") {
			names = constants.FindStringSubmatch(line)
		}
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
	b.Grow(len(source))
	written := 0
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
			if 'a' <= source[from] && source[from] <= 'z' { // no constant
				break
			}
			if number, ok := known[source[from:end]]; ok {
				b.WriteString(source[written:from])
				b.WriteString(number)
				written = end
			}
		}
		from = end
	}
	b.WriteString(source[written:])
	return b.String()
}

// inName reports whether a name of Lua may have the byte in it.
func inName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
