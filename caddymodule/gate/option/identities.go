package option

import (
	"slices"
	"strings"
)

// emailRisks returns warnings about e-mail addresses that the gate reads as something else.
func (s *Setup) emailRisks() (risks []string) {
	rules, err := s.App.IdentityRules()
	if at := slices.IndexFunc(s.Buyer, namesEmail); err == nil && at >= 0 && !rules.BuyerEmail() && !s.App.NamesBuyers() {
		risks = append(risks, "the buyer "+s.Buyer[at]+" is probably an e-mail address, and with A@x.test and a@x.test one person is two buyers: "+
			"write `identities { buyer email }` in the global option stockgate, or `buyer name` there if your shop tells them apart")
	}
	for _, kind := range []string{"phone", "address", "device"} {
		if at := slices.IndexFunc(s.Identities[kind], namesEmail); at >= 0 {
			value := s.Identities[kind][at]
			risks = append(risks, "identity "+kind+" reads "+value+", which is probably an e-mail address: write `identity email "+value+"`, and `per: email` in the sale file, so that no other spelling of it is another person")
		}
	}
	return risks
}

// namesEmail reports whether a value is probably an e-mail address, by its name.
func namesEmail(expr string) bool {
	name := strings.ToLower(strings.Trim(expr, "{}"))
	name = name[strings.LastIndexByte(name, '.')+1:]
	return hasPlaceholder(expr) && slices.ContainsFunc([]string{"mail", "emailaddress", "email_address", "email-address"}, func(end string) bool { return strings.HasSuffix(name, end) })
}
