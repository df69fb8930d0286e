package reference

// links are the pages that explain an option, by block and option.
var links = map[string]map[string]string{}
