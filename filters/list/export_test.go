package list

import "context"

// Look looks at the file once, for tests of a File that was not started.
func (f *File) Look() { f.look(context.Background()) }
