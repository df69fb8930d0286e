# frozen_string_literal: true

require "digest"
require "json"
require "net/http"
require "openssl"
require "strscan"

# Verifies reservation tokens of Stockgate. Copy this file into your shop. It needs Ruby 3.0 with OpenSSL 1.1.1 or
# newer, and no gem.
#
#   verifier = StockgateToken.new("order-backend", jwks_url: "https://shop.example.com/.well-known/jwks.json")
#   reason, claims = verifier.verify(request.get_header("HTTP_STOCKGATE_TOKEN"), subject: buyer,
#                                    lines: [{ "sku" => "7", "qty" => 1 }], known: ->(jti) { answered?(jti) })
#
# The reasons, and what the shop answers to each, are in docs/shop.md.
class StockgateToken
  MAX_SIZE = 4096 # of a token, in bytes
  MAX_SET = 256 << 10 # of a JWKS, in bytes
  MAX_UNITS = 10**12
  MAX_DEPTH = 16 # of values that are not known

  # Why a token is refused. The claims are there if it is genuine.
  class Refused < StandardError
    attr_reader :reason, :claims

    def initialize(reason = "malformed", claims = nil)
      super(reason)
      @reason = reason
      @claims = claims
    end
  end

  # Give jwks_url, secret (as in `key hmac`) or both. leeway is how many seconds after exp a token still counts; keep it
  # below the margin of the edge (1 s). now returns Unix seconds. It may be used by many threads.
  def initialize(audience, jwks_url: nil, secret: nil, issuer: "stockgate", leeway: 0, timeout: 5, now: -> { Process.clock_gettime(Process::CLOCK_REALTIME) })
    if audience.to_s.empty? || !leeway.between?(0, 60) || !(jwks_url || secret)
      raise ArgumentError, "give an audience, jwks_url or secret, and a leeway of 0 to 60 seconds"
    end
    raise ArgumentError, "give a whole http or https URL" unless jwks_url.nil? || jwks_url.match?(%r{\Ahttps?://})

    @audience = audience
    @issuer = issuer
    @leeway = leeway
    @now = now
    @secrets = secret ? shared(secret) : {}
    @remote = jwks_url && Remote.new(jwks_url, timeout, now)
  end

  # Returns [reason, claims]: "ok" and the claims, or why the shop must not sell. token is the value of the header
  # Stockgate-Token, nil without one. subject is the buyer; lines are the order's, nil is not compared; known gets a jti
  # and reports whether the shop has answered it before.
  def verify(token, subject: nil, any_subject: false, lines: nil, known: nil)
    claims = genuine(token.to_s)
    must(subject.to_s.empty? ? any_subject : subject == claims["sub"], "subject", claims)
    must(lines.nil? || Lines.same?(claims["lines"], lines), "lines", claims)
    must(known.nil? || !known.call(claims["jti"]), "known", claims)
    must(@now.call - @leeway < claims["exp"], "expired", claims)
    ["ok", claims]
  rescue Refused => e
    [e.reason, e.claims]
  end

  private

  def must(good, reason = "malformed", claims = nil)
    raise Refused.new(reason, claims) unless good
  end

  def genuine(token)
    must(!token.empty?, "missing")
    must(!token.include?(","), "repeated")
    must(token.bytesize <= MAX_SIZE && token.ascii_only?)
    parts = token.split(".", -1)
    must(parts.size == 3)
    header, body, signature = parts.map { |part| Base64url.decode(part) }
    valid = key(Json.read(header))
    must(valid.call(parts.first(2).join("."), signature), "signature")
    claims = Claims.check(Json.read(body))
    must(claims["iss"] == @issuer, "issuer")
    must(claims["aud"] == @audience, "audience")
    claims
  end

  def key(header)
    Claims.need(header, { "typ" => String, "alg" => String, "kid" => String })
    must(!header.key?("crit"))
    must(header["typ"] == "stockgate+jwt", "type")
    must(%w[EdDSA HS256].include?(header["alg"]), "algorithm")
    alg, valid = @secrets[header["kid"]] || @remote&.find(header["kid"])
    must(valid, "unknown_key")
    must(alg == header["alg"], "algorithm") # it belongs to the key, the token cannot choose it
    valid
  end

  def shared(secret)
    if secret.bytesize < 32 || secret.strip != secret
      raise ArgumentError, "the secret has less than 32 bytes, or white space around it"
    end

    kid = Base64url.thumbprint({ "k" => Base64url.encode(secret), "kty" => "oct" })
    valid = lambda do |message, mac|
      own = OpenSSL::HMAC.digest("SHA256", secret, message)
      own.bytesize == mac.bytesize && OpenSSL.fixed_length_secure_compare(own, mac)
    end
    { kid => ["HS256", valid] }
  end

  # The keys of the edge: fetched when first needed, again for an unknown key and each hour, at a bounded rate.
  # They stay while the edge is away.
  class Remote
    FIRST_INTERVAL = 1 # of fetches while none has worked, in seconds
    INTERVAL = 10
    MAX_AGE = 3600
    PREFIX = ["302a300506032b6570032100"].pack("H*") # of an Ed25519 key in DER (RFC 8410)

    def initialize(url, timeout, now)
      @url = URI(url)
      @timeout = timeout
      @now = now
      @lock = Mutex.new
      @keys = {}
      @begun = @fetched = nil
      @failed = false
    end

    def find(kid)
      found = @keys[kid]
      return found if found && (@now.call - @fetched).abs < MAX_AGE

      # Only one thread fetches; those that have a key do not wait for it.
      return found if found && @lock.locked?

      @lock.synchronize do
        fetch if due?(kid)
        found ||= @keys[kid]
        raise Refused, "keys_unavailable" if found.nil? && @failed
      end
      found
    end

    private

    def due?(kid)
      interval = @fetched.nil? ? FIRST_INTERVAL : INTERVAL
      return false if @begun && (@now.call - @begun).abs < interval

      !@keys.key?(kid) || (@now.call - @fetched).abs >= MAX_AGE
    end

    def fetch
      @begun = @now.call
      @failed = true
      keys = public_keys(JSON.parse(get))
      return if keys.empty?

      @keys = keys
      @fetched = @begun
      @failed = false
    rescue SystemCallError, IOError, SocketError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError, Net::HTTPBadResponse, JSON::JSONError
      # the keys of the last fetch stay
    end

    # The JWKS. The URL decides which server is trusted, so no redirect is followed.
    def get
      options = { use_ssl: @url.scheme == "https", open_timeout: @timeout, read_timeout: @timeout }
      Net::HTTP.start(@url.host, @url.port, **options) do |http|
        http.max_retries = 0
        http.request_get(@url.request_uri, "Accept" => "application/json") do |answer|
          raise IOError, "status #{answer.code}" unless answer.code == "200"

          text = +""
          answer.read_body do |part|
            text << part
            raise IOError, "the JWKS is too large" if text.bytesize > MAX_SET
          end
          return text.force_encoding(Encoding::UTF_8)
        end
      end
    end

    # Those for Ed25519, by thumbprint; all others are passed over, above all secrets.
    def public_keys(set)
      jwks = set.is_a?(Hash) && set["keys"].is_a?(Array) ? set["keys"] : []
      jwks.each_with_object({}) do |jwk, found|
        next unless jwk.is_a?(Hash) && jwk["kty"] == "OKP" && jwk["crv"] == "Ed25519" && jwk["x"].is_a?(String)
        next unless [nil, "", "sig"].include?(jwk["use"]) && [nil, "", "EdDSA"].include?(jwk["alg"])

        raw = Base64url.bytes(jwk["x"])
        next unless raw&.bytesize == 32

        found[Base64url.thumbprint(jwk.slice("crv", "kty", "x"))] = ["EdDSA", ed25519(raw)]
      end
    end

    def ed25519(raw)
      key = OpenSSL::PKey.read(PREFIX + raw)
      lambda do |message, signature|
        key.verify(nil, signature, message)
      rescue OpenSSL::PKey::PKeyError
        false
      end
    end
  end

  # base64url without padding, in the one spelling that the bytes have.
  module Base64url
    module_function

    def encode(raw)
      [raw].pack("m0").tr("+/", "-_").delete("=")
    end

    # nil: it is not that.
    def bytes(part)
      raw = part.tr("-_", "+/").unpack1("m")
      raw if encode(raw) == part
    end

    def decode(part)
      bytes(part) || raise(Refused)
    end

    # RFC 7638: the kid of a key.
    def thumbprint(members)
      encode(Digest::SHA256.digest(JSON.generate(members.sort.to_h)))
    end
  end

  # What a token must say.
  module Claims
    module_function

    def must(good)
      raise Refused unless good
    end

    def check(claims)
      need(claims, { "iss" => String, "aud" => String, "sub" => String, "jti" => String, "iat" => Integer, "exp" => Integer,
                     "ep" => Integer, "sale" => String, "lines" => Array }, { "ref" => String })
      must(claims.values_at("sub", "jti", "sale", "lines").none?(&:empty?))
      must(claims["iat"] >= 0 && claims["exp"] > claims["iat"] && claims["ep"] >= 0)
      claims["lines"].each do |line|
        must(line.is_a?(Hash))
        need(line, { "sku" => String, "qty" => Integer }, { "region" => String })
        must(!line["sku"].empty? && line["qty"].between?(1, MAX_UNITS))
      end
      claims
    end

    # Members of these types; what else there is may nest MAX_DEPTH deep.
    def need(members, required, optional = {})
      required.merge(optional).each do |name, type|
        must(members.key?(name) ? members[name].is_a?(type) : optional.key?(name))
      end
      members.each { |name, value| must(required[name] == Array || height(value) <= MAX_DEPTH) }
    end

    def height(value)
      inner = value.is_a?(Hash) ? value.values : Array(value.is_a?(Array) ? value : nil)
      1 + (inner.map { |one| height(one) }.max || 0)
    end
  end

  # Compares what is held with the order.
  module Lines
    # Whether the order takes exactly what is held: in any order, equal lines summed. Stock that is held without a region
    # answers for any region.
    def self.same?(held, order)
      left = Hash.new(0)
      held.each { |line| left[[line["sku"], line["region"].to_s]] += line["qty"] }
      order.each do |line|
        cell = [line["sku"], line["region"].to_s]
        cell = [line["sku"], ""] unless left.key?(cell)
        return false unless line["qty"].is_a?(Integer) && line["qty"] >= 1 && line["qty"] <= left[cell]

        left[cell] -= line["qty"]
      end
      left.values.all?(&:zero?)
    end
  end

  # I-JSON (RFC 7493): every reader sees the same in it. JSON.parse would take the last of two members.
  class Json
    INT64 = (-2**63...2**63).freeze
    ESCAPES = { "b" => "\b", "f" => "\f", "n" => "\n", "r" => "\r", "t" => "\t" }.freeze

    # An object.
    def self.read(raw)
      text = raw.dup.force_encoding(Encoding::UTF_8)
      raise Refused unless text.valid_encoding?

      reader = new(text)
      value = reader.value(0)
      raise Refused unless value.is_a?(Hash) && reader.token(/\z/)

      value
    end

    def initialize(text)
      @text = StringScanner.new(text)
    end

    # What matches behind white space; nil: nothing does.
    def token(pattern)
      @text.skip(/[ \t\r\n]*/)
      @text.scan(pattern)
    end

    # A whole number of 64 bits is an Integer, any other a Float.
    def value(depth)
      raise Refused unless depth < 64
      return object(depth) if token(/\{/)
      return list(depth) if token(/\[/)

      case token(/true|false|null/)
      when "true" then return true
      when "false" then return false
      when "null" then return nil
      end
      number = token(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/)
      return text unless number

      number.match?(/\A-?[0-9]+\z/) && INT64.cover?(number.to_i) ? number.to_i : 0.5
    end

    private

    def object(depth)
      members = {}
      until token(/\}/)
        raise Refused unless members.empty? || token(/,/)

        name = text
        raise Refused if token(/:/).nil? || members.key?(name)

        members[name] = value(depth + 1)
      end
      members
    end

    def list(depth)
      values = []
      until token(/\]/)
        raise Refused unless values.empty? || token(/,/)

        values << value(depth + 1)
      end
      values
    end

    def text
      quoted = token(%r{"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"}) or raise Refused
      quoted[1..-2].gsub(/\\u(d[89ab]\h\h)\\u(d[c-f]\h\h)|\\u(\h{4})|\\(.)/i) do
        high, low, unit, escape = $1, $2, $3, $4
        next ESCAPES.fetch(escape, escape) if escape
        next [0x10000 + ((high.hex - 0xd800) << 10) + low.hex - 0xdc00].pack("U") if high

        raise Refused if unit.hex.between?(0xd800, 0xdfff) # half of a surrogate pair

        [unit.hex].pack("U")
      end
    end
  end
end
