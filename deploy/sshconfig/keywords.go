package sshconfig

// What hopbed does about a keyword of ssh_config(5).
type treatment int

const (
	used treatment = iota
	// harmless keywords change neither where nor how a connection is made, or are
	// about what hopbed does not do: terminals, forwarding, multiplexing, passwords.
	harmless
	// said keywords do, and are not supported: a warning names them, unless the
	// value is the one that hopbed has anyway.
	said
)

// keywords are all of OpenSSH 9.9, in lower case, with the older names.
var keywords = map[string]treatment{
	"host": used, "match": used, "include": used, "ignoreunknown": used,
	"hostname": used, "user": used, "port": used, "addressfamily": used, "batchmode": used,
	"identityfile": used, "identitiesonly": used, "identityagent": used, "pubkeyauthentication": used,
	"proxyjump": used, "proxycommand": used,
	"userknownhostsfile": used, "globalknownhostsfile": used, "stricthostkeychecking": used, "hostkeyalias": used, "hashknownhosts": used, "revokedhostkeys": used,
	"connecttimeout": used, "connectionattempts": used, "serveraliveinterval": used, "serveralivecountmax": used,
	"hostkeyalgorithms": used, "kexalgorithms": used, "ciphers": used, "macs": used,
	"pubkeyacceptedalgorithms": used, "pubkeyacceptedkeytypes": used,

	"bindaddress": said, "bindinterface": said, "canonicalizehostname": said, "certificatefile": said, "checkhostip": said,
	"hostbasedauthentication": said, "knownhostscommand": said, "nohostauthenticationforlocalhost": said, "pkcs11provider": said, "smartcarddevice": said,
	"preferredauthentications": said, "requiredrsasize": said, "securitykeyprovider": said, "verifyhostkeydns": said, "casignaturealgorithms": said,
	"kbdinteractiveauthentication": said, "challengeresponseauthentication": said, "passwordauthentication": said,

	"addkeystoagent": harmless, "afstokenpassing": harmless, "canonicaldomains": harmless, "canonicalizefallbacklocal": harmless, "canonicalizemaxdots": harmless,
	"canonicalizepermittedcnames": harmless, "channeltimeout": harmless, "cipher": harmless, "clearallforwardings": harmless, "compression": harmless, "compressionlevel": harmless,
	"controlmaster": harmless, "controlpath": harmless, "controlpersist": harmless, "dsaauthentication": harmless, "dynamicforward": harmless,
	"enableescapecommandline": harmless, "enablesshkeysign": harmless, "escapechar": harmless, "exitonforwardfailure": harmless, "fallbacktorsh": harmless, "fingerprinthash": harmless,
	"forkafterauthentication": harmless, "forwardagent": harmless, "forwardx11": harmless, "forwardx11timeout": harmless, "forwardx11trusted": harmless,
	"gatewayports": harmless, "globalknownhostsfile2": harmless, "gssapiauthentication": harmless, "gssapiclientidentity": harmless, "gssapidelegatecredentials": harmless,
	"gssapikeyexchange": harmless, "gssapikexalgorithms": harmless, "gssapirenewalforcesrekey": harmless, "gssapiserveridentity": harmless, "gssapitrustdns": harmless,
	"hostbasedacceptedalgorithms": harmless, "hostbasedkeytypes": harmless, "ipqos": harmless, "kbdinteractivedevices": harmless, "keepalive": harmless, "localcommand": harmless,
	"localforward": harmless, "loglevel": harmless, "logverbose": harmless, "numberofpasswordprompts": harmless, "obscurekeystroketiming": harmless,
	"permitlocalcommand": harmless, "permitremoteopen": harmless, "protocol": harmless, "proxyusefdpass": harmless, "rekeylimit": harmless, "remotecommand": harmless,
	"remoteforward": harmless, "requesttty": harmless, "rhostsauthentication": harmless, "rhostsrsaauthentication": harmless, "rsaauthentication": harmless, "sendenv": harmless,
	"sessiontype": harmless, "setenv": harmless, "skeyauthentication": harmless, "stdinnull": harmless, "streamlocalbindmask": harmless, "streamlocalbindunlink": harmless,
	"syslogfacility": harmless, "tag": harmless, "tcpkeepalive": harmless, "tisauthentication": harmless, "tunnel": harmless, "tunneldevice": harmless,
	"updatehostkeys": harmless, "useblacklistedkeys": harmless, "usekeychain": harmless, "useprivilegedport": harmless, "useroaming": harmless, "userknownhostsfile2": harmless,
	"userrsh": harmless, "versionaddendum": harmless, "visualhostkey": harmless, "warnweakcrypto": harmless, "xauthlocation": harmless,
}

// same are the values with which an unsupported keyword asks for what hopbed does
// anyway.
var same = map[string][]string{
	"canonicalizehostname":             {"no", "none", "false"},
	"checkhostip":                      {"no", "false"},
	"hostbasedauthentication":          {"no", "false"},
	"knownhostscommand":                {"none"},
	"nohostauthenticationforlocalhost": {"no", "false"},
	"pkcs11provider":                   {"none"},
	"securitykeyprovider":              {"internal"},
	"verifyhostkeydns":                 {"no", "false"},
	"certificatefile":                  {"none"},
	"preferredauthentications":         {"publickey"},
	"kbdinteractiveauthentication":     {"no", "false"},
	"challengeresponseauthentication":  {"no", "false"},
	"passwordauthentication":           {"no", "false"},
}

// instead says what hopbed does in place of an unsupported keyword.
var instead = map[string]string{
	"bindaddress":                      "the system chooses the local address",
	"bindinterface":                    "the system chooses the interface",
	"canonicalizehostname":             "the name is used as it is; write the full name as HostName or in the inventory",
	"certificatefile":                  "keys are offered without user certificates",
	"checkhostip":                      "host keys are looked up by name",
	"hostbasedauthentication":          "keys alone are offered",
	"knownhostscommand":                "host keys come from files; save the command's output and name it as UserKnownHostsFile",
	"nohostauthenticationforlocalhost": "host keys are always checked",
	"pkcs11provider":                   "load the token into an agent: ssh-add -s PROVIDER",
	"smartcarddevice":                  "load the token into an agent: ssh-add -s PROVIDER",
	"preferredauthentications":         "keys alone are offered",
	"requiredrsasize":                  "RSA keys of 1024 bits and more are accepted",
	"securitykeyprovider":              "load the key into an agent: ssh-add",
	"verifyhostkeydns":                 "host keys are checked by known_hosts, not by DNS",
	"casignaturealgorithms":            "certificates of hosts may be signed by every algorithm that is not broken",
	"kbdinteractiveauthentication":     "keys alone are offered",
	"challengeresponseauthentication":  "keys alone are offered",
	"passwordauthentication":           "keys alone are offered",
}

// single are the keywords that take one value.
var single = map[string]bool{
	"hostname": true, "user": true, "port": true, "identityfile": true, "identitiesonly": true, "identityagent": true,
	"proxyjump": true, "stricthostkeychecking": true, "hostkeyalias": true, "connecttimeout": true, "connectionattempts": true,
	"serveraliveinterval": true, "serveralivecountmax": true, "addressfamily": true, "batchmode": true, "hashknownhosts": true,
	"hostkeyalgorithms": true, "kexalgorithms": true, "ciphers": true, "macs": true, "pubkeyacceptedalgorithms": true, "pubkeyacceptedkeytypes": true,
	"pubkeyauthentication": true, "revokedhostkeys": true, "certificatefile": true,
}
