package doctor

import "github.com/stockgate/stockgate/caddymodule/operate/adminapi"

// bypasses examines whether orders pass without a reservation, at any edge.
func (d *examination) bypasses() {
	_, err := d.app.OwnBypasses()
	if err != nil {
		d.Add(adminapi.LevelError, "bypass", "%v", err)
	}
	all := d.app.Bypassed()
	for i := range all {
		d.Add(adminapi.LevelError, "bypass", "%s; '%s' ends it, at that edge", all[i].Sentence(), all[i].Off())
	}
	if err == nil && len(all) == 0 {
		d.Add(adminapi.LevelOK, "bypass", "no gate is bypassed")
	}
}
