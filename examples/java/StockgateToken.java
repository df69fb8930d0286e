import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.spec.EdECPoint;
import java.security.spec.EdECPublicKeySpec;
import java.security.spec.NamedParameterSpec;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies reservation tokens of Stockgate. Copy this file into your shop. It needs JDK 17 and nothing else.
 *
 * <pre>
 * var verifier = new StockgateToken(StockgateToken.Options.of("order-backend").jwks("https://shop.example.com/.well-known/jwks.json"));
 * var result = verifier.verify(header, new StockgateToken.Order(buyer, false, List.of(new StockgateToken.Line("7", 1, "")), this::hasOrder));
 * </pre>
 *
 * The reasons, and what the shop answers to each, are in docs/shop.md. It may be used by many threads.
 */
public final class StockgateToken {
  private static final int MAX_SIZE = 4096; // of a token
  private static final int MAX_SET = 256 << 10; // of a JWKS, in bytes
  private static final long MAX_UNITS = 1_000_000_000_000L;
  private static final int MAX_DEPTH = 16; // of values that are not known

  /** Give jwks, secret (as in `key hmac`) or both. Keep leeway, after exp, below the margin of the edge (1 s). */
  public record Options(String audience, String issuer, String jwks, String secret, Duration leeway, Duration timeout, Clock clock) {
    public static Options of(String audience) {
      return new Options(audience, "stockgate", null, null, Duration.ZERO, Duration.ofSeconds(5), Clock.systemUTC());
    }

    public Options jwks(String url) {
      return new Options(audience, issuer, url, secret, leeway, timeout, clock);
    }

    public Options secret(String hmac) {
      return new Options(audience, issuer, jwks, hmac, leeway, timeout, clock);
    }
  }

  /** An item and how many units of it; region is empty where the order has none. */
  public record Line(String sku, long qty, String region) {}

  /**
   * The order that the shop is about to write. lines null: not compared. known reports whether the shop has answered a jti before;
   * null: not asked. anySubject: an empty subject accepts the token of every buyer.
   */
  public record Order(String subject, boolean anySubject, List<Line> lines, Predicate<String> known) {}

  public record Claims(String iss, String aud, String sub, String jti, long iat, long exp, long ep, String sale, String ref, List<Line> lines) {}

  /** reason is "ok", or why the shop must not sell; claims are null unless the token is genuine. */
  public record Result(String reason, Claims claims) {}

  private final Options options;
  private final Map<String, Key> secrets = new HashMap<>();
  private final Remote remote;

  public StockgateToken(Options o) {
    if (o.audience.isEmpty() || o.leeway.isNegative() || o.leeway.compareTo(Duration.ofMinutes(1)) > 0 || o.jwks == null && o.secret == null)
      throw new IllegalArgumentException("give an audience, jwks or secret, and a leeway of 0 to 60 seconds");
    if (o.jwks != null && !o.jwks.matches("https?://.+")) throw new IllegalArgumentException("give a whole http or https URL");
    options = o;
    remote = o.jwks == null ? null : new Remote(o);
    if (o.secret == null) return;
    byte[] secret = o.secret.getBytes(StandardCharsets.UTF_8);
    if (secret.length < 32 || !o.secret.strip().equals(o.secret))
      throw new IllegalArgumentException("the secret has less than 32 bytes, or white space around it");
    secrets.put(thumbprint("{\"k\":\"" + encode(secret) + "\",\"kty\":\"oct\"}"), new Key("HS256", hmac(secret)));
  }

  /** Verifies the value of the header Stockgate-Token, null without one. */
  public Result verify(String token, Order order) {
    try {
      Claims claims = genuine(token);
      return new Result(compare(claims, order), claims);
    } catch (Refused refused) {
      return new Result(refused.getMessage(), null);
    }
  }

  private String compare(Claims claims, Order order) {
    boolean unnamed = order.subject == null || order.subject.isEmpty();
    if (unnamed ? !order.anySubject : !order.subject.equals(claims.sub)) return "subject";
    if (order.lines != null && !same(claims.lines, order.lines)) return "lines";
    if (order.known != null && order.known.test(claims.jti)) return "known";
    if (options.clock.instant().minus(options.leeway).getEpochSecond() >= claims.exp) return "expired";
    return "ok";
  }

  private Claims genuine(String token) {
    must(token != null && !token.isEmpty(), "missing");
    must(token.indexOf(',') < 0, "repeated");
    must(token.length() <= MAX_SIZE);
    String[] parts = token.split("\\.", -1);
    must(parts.length == 3);
    byte[] header = decode(parts[0]);
    byte[] body = decode(parts[1]);
    byte[] signature = decode(parts[2]);
    Key key = key(Json.read(header));
    must(key.check.valid((parts[0] + "." + parts[1]).getBytes(StandardCharsets.US_ASCII), signature), "signature");
    Claims claims = claims(Json.read(body));
    must(claims.iss.equals(options.issuer), "issuer");
    must(claims.aud.equals(options.audience), "audience");
    return claims;
  }

  private Key key(Map<String, Object> header) {
    need(header, Map.of("typ", String.class, "alg", String.class, "kid", String.class), Map.of());
    must(!header.containsKey("crit"));
    must(header.get("typ").equals("stockgate+jwt"), "type");
    must(List.of("EdDSA", "HS256").contains(header.get("alg")), "algorithm");
    Key key = secrets.get(header.get("kid"));
    if (key == null && remote != null) key = remote.find((String) header.get("kid"));
    must(key != null, "unknown_key");
    must(key.alg.equals(header.get("alg")), "algorithm"); // it belongs to the key, the token cannot choose it
    return key;
  }

  private static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1;

    Refused(String reason) {
      super(reason, null, false, false);
    }
  }

  private static void must(boolean good) {
    must(good, "malformed");
  }

  private static void must(boolean good, String reason) {
    if (!good) throw new Refused(reason);
  }

  private interface Check {
    boolean valid(byte[] message, byte[] signature);
  }

  private record Key(String alg, Check check) {}

  private static Check hmac(byte[] secret) {
    return (message, mac) -> {
      try {
        Mac own = Mac.getInstance("HmacSHA256");
        own.init(new SecretKeySpec(secret, "HmacSHA256"));
        return MessageDigest.isEqual(own.doFinal(message), mac);
      } catch (GeneralSecurityException err) {
        throw new IllegalStateException(err);
      }
    };
  }

  /** RFC 8032, 5.1.3: y in little-endian, the highest bit is the sign of x. */
  private static Check ed25519(byte[] raw) throws GeneralSecurityException {
    byte[] y = new byte[32];
    for (int i = 0; i < 32; i++) y[i] = raw[31 - i];
    boolean odd = (y[0] & 0x80) != 0;
    y[0] &= 0x7f;
    PublicKey key = KeyFactory.getInstance("Ed25519").generatePublic(new EdECPublicKeySpec(NamedParameterSpec.ED25519, new EdECPoint(odd, new BigInteger(1, y))));
    return (message, signature) -> {
      try {
        Signature verifier = Signature.getInstance("Ed25519");
        verifier.initVerify(key);
        verifier.update(message);
        return verifier.verify(signature);
      } catch (SignatureException err) {
        return false;
      } catch (GeneralSecurityException err) {
        throw new IllegalStateException(err);
      }
    };
  }

  /**
   * The keys of the edge: fetched when first needed, again for an unknown key and each hour, at a bounded rate.
   * They stay while the edge is away.
   */
  private static final class Remote {
    private static final Duration FIRST_INTERVAL = Duration.ofSeconds(1); // of fetches while none has worked
    private static final Duration INTERVAL = Duration.ofSeconds(10);
    private static final Duration MAX_AGE = Duration.ofHours(1);

    private final Options options;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile Map<String, Key> keys = Map.of();
    private volatile Instant fetched = Instant.MIN;
    private Instant begun = Instant.MIN;
    private boolean failed;

    Remote(Options options) {
      this.options = options;
    }

    Key find(String kid) {
      Key known = keys.get(kid);
      if (known != null && !past(fetched, MAX_AGE)) return known;
      // Only one thread fetches; those that have a key do not wait for it.
      if (known == null) lock.lock();
      else if (!lock.tryLock()) return known;
      try {
        boolean wanted = !keys.containsKey(kid) || past(fetched, MAX_AGE);
        if (wanted && past(begun, fetched == Instant.MIN ? FIRST_INTERVAL : INTERVAL)) fetch();
        Key found = known != null ? known : keys.get(kid);
        must(found != null || !failed, "keys_unavailable");
        return found;
      } finally {
        lock.unlock();
      }
    }

    private boolean past(Instant then, Duration least) {
      return then == Instant.MIN || Duration.between(then, options.clock.instant()).abs().compareTo(least) >= 0;
    }

    private void fetch() {
      begun = options.clock.instant();
      failed = true;
      try {
        Map<String, Key> found = publicKeys(Json.read(get()));
        if (found.isEmpty()) return;
        keys = found;
        fetched = begun;
        failed = false;
      } catch (InterruptedException err) {
        Thread.currentThread().interrupt();
      } catch (Exception err) {
        // the keys of the last fetch stay
      }
    }

    private byte[] get() throws Exception {
      // A client follows no redirect of itself: the URL decides which server is trusted. This one keeps no connection for the next hour.
      HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
      HttpRequest request = HttpRequest.newBuilder(URI.create(options.jwks)).timeout(options.timeout).build();
      return client.sendAsync(request, HttpResponse.BodyHandlers.ofInputStream())
          .thenApplyAsync(Remote::body)
          .get(options.timeout.toMillis(), TimeUnit.MILLISECONDS);
    }

    private static byte[] body(HttpResponse<InputStream> answer) {
      try (InputStream in = answer.body()) {
        byte[] set = in.readNBytes(MAX_SET + 1);
        must(answer.statusCode() == 200 && set.length <= MAX_SET);
        return set;
      } catch (IOException err) {
        throw new IllegalStateException(err);
      }
    }

    /** Those for Ed25519, by thumbprint; all others are passed over, above all secrets. */
    private static Map<String, Key> publicKeys(Map<String, Object> set) throws GeneralSecurityException {
      Map<String, Key> found = new HashMap<>();
      for (Object member : (List<?>) set.get("keys")) {
        if (!(member instanceof Map<?, ?> jwk) || !"OKP".equals(jwk.get("kty")) || !"Ed25519".equals(jwk.get("crv"))) continue;
        if (!optional(jwk.get("use"), "sig") || !optional(jwk.get("alg"), "EdDSA")) continue;
        byte[] raw = jwk.get("x") instanceof String x ? bytes(x) : null;
        if (raw == null || raw.length != 32) continue;
        found.put(thumbprint("{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"" + jwk.get("x") + "\"}"), new Key("EdDSA", ed25519(raw)));
      }
      return found;
    }

    private static boolean optional(Object value, String expected) {
      return value == null || value.equals("") || value.equals(expected);
    }
  }

  /** RFC 7638: the kid of a key. */
  private static String thumbprint(String members) {
    try {
      return encode(MessageDigest.getInstance("SHA-256").digest(members.getBytes(StandardCharsets.UTF_8)));
    } catch (GeneralSecurityException err) {
      throw new IllegalStateException(err);
    }
  }

  private static String encode(byte[] raw) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(raw);
  }

  /** base64url without padding, in the one spelling that the bytes have; null: it is not that. */
  private static byte[] bytes(String part) {
    try {
      byte[] raw = Base64.getUrlDecoder().decode(part);
      return encode(raw).equals(part) ? raw : null;
    } catch (IllegalArgumentException err) {
      return null;
    }
  }

  private static byte[] decode(String part) {
    byte[] raw = bytes(part);
    must(raw != null);
    return raw;
  }

  private static Claims claims(Map<String, Object> c) {
    need(c, Map.of("iss", String.class, "aud", String.class, "sub", String.class, "jti", String.class, "iat", Long.class, "exp", Long.class,
        "ep", Long.class, "sale", String.class, "lines", List.class), Map.of("ref", String.class));
    List<Line> lines = new ArrayList<>();
    for (Object line : (List<?>) c.get("lines")) lines.add(line(line));
    Claims claims = new Claims((String) c.get("iss"), (String) c.get("aud"), (String) c.get("sub"), (String) c.get("jti"), (Long) c.get("iat"),
        (Long) c.get("exp"), (Long) c.get("ep"), (String) c.get("sale"), (String) c.getOrDefault("ref", ""), List.copyOf(lines));
    must(!claims.sub.isEmpty() && !claims.jti.isEmpty() && !claims.sale.isEmpty() && !lines.isEmpty());
    must(claims.iat >= 0 && claims.exp > claims.iat && claims.ep >= 0);
    return claims;
  }

  private static Line line(Object value) {
    must(value instanceof Json.Members);
    Json.Members members = (Json.Members) value;
    need(members, Map.of("sku", String.class, "qty", Long.class), Map.of("region", String.class));
    Line line = new Line((String) members.get("sku"), (Long) members.get("qty"), (String) members.getOrDefault("region", ""));
    must(!line.sku.isEmpty() && line.qty >= 1 && line.qty <= MAX_UNITS);
    return line;
  }

  /** Members of these types; what else there is may nest MAX_DEPTH deep. */
  private static void need(Map<String, Object> members, Map<String, Class<?>> required, Map<String, Class<?>> optional) {
    required.forEach((name, type) -> must(type.isInstance(members.get(name))));
    optional.forEach((name, type) -> must(!members.containsKey(name) || type.isInstance(members.get(name))));
    members.forEach((name, value) -> must(required.get(name) == List.class || height(value) <= MAX_DEPTH));
  }

  private static int height(Object value) {
    Collection<?> inner = value instanceof Map<?, ?> map ? map.values() : value instanceof List<?> list ? list : List.of();
    int most = 0;
    for (Object one : inner) most = Math.max(most, height(one));
    return 1 + most;
  }

  /**
   * Whether the order takes exactly what is held: in any order, equal lines summed. Stock that is held without a region
   * answers for any region.
   */
  private static boolean same(List<Line> held, List<Line> order) {
    Map<List<String>, Long> left = new HashMap<>();
    for (Line line : held) left.merge(List.of(line.sku, line.region), line.qty, Long::sum);
    for (Line line : order) {
      List<String> cell = List.of(line.sku, line.region == null ? "" : line.region);
      if (!left.containsKey(cell)) cell = List.of(line.sku, "");
      long most = left.getOrDefault(cell, 0L);
      if (line.qty < 1 || line.qty > most) return false;
      left.put(cell, most - line.qty);
    }
    return left.values().stream().allMatch(units -> units == 0);
  }

  /** I-JSON (RFC 7493): every reader sees the same in it. */
  static final class Json {
    /** An object. */
    static final class Members extends LinkedHashMap<String, Object> {
      private static final long serialVersionUID = 1;
    }

    private static final Pattern SPACE = Pattern.compile("[ \\t\\r\\n]*+");
    private static final Pattern WORD = Pattern.compile("true|false|null");
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*+)(\\.[0-9]+)?([eE][-+]?[0-9]+)?");
    private static final Pattern TEXT = Pattern.compile("\"(?:[^\"\\\\\\x00-\\x1f]|\\\\(?:[\"\\\\/bfnrt]|u[0-9a-fA-F]{4}))*+\"");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u(....)|(.))");
    private static final Map<String, String> ESCAPES = Map.of("b", "\b", "f", "\f", "n", "\n", "r", "\r", "t", "\t");

    private final String text;
    private int at;

    private Json(String text) {
      this.text = text;
    }

    static Members read(byte[] utf8) {
      try {
        Json reader = new Json(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(utf8)).toString());
        Object value = reader.value(0);
        reader.take(SPACE);
        must(value instanceof Members && reader.at == reader.text.length());
        return (Members) value;
      } catch (CharacterCodingException err) {
        throw new Refused("malformed");
      }
    }

    /** What matches here; null: nothing does. */
    private Matcher take(Pattern pattern) {
      Matcher found = pattern.matcher(text).region(at, text.length());
      if (!found.lookingAt()) return null;
      at = found.end();
      return found;
    }

    private boolean take(char c) {
      take(SPACE);
      boolean there = at < text.length() && text.charAt(at) == c;
      if (there) at++;
      return there;
    }

    /** A list is a List, a whole number of 64 bits a Long, any other a Double. */
    private Object value(int depth) {
      must(depth < 64);
      if (take('{')) return members(depth);
      if (take('[')) return list(depth);
      Matcher word = take(WORD);
      if (word != null) return word.group().equals("null") ? null : (Object) Boolean.valueOf(word.group());
      Matcher number = take(NUMBER);
      if (number == null) return string();
      try {
        return number.group(1) == null && number.group(2) == null ? (Object) Long.valueOf(number.group()) : (Object) Double.valueOf(number.group());
      } catch (NumberFormatException err) {
        return Double.valueOf(number.group());
      }
    }

    private Members members(int depth) {
      Members members = new Members();
      while (!take('}')) {
        must(members.isEmpty() || take(','));
        String name = string();
        must(take(':') && !members.containsKey(name));
        members.put(name, value(depth + 1));
      }
      return members;
    }

    private List<Object> list(int depth) {
      List<Object> list = new ArrayList<>();
      while (!take(']')) {
        must(list.isEmpty() || take(','));
        list.add(value(depth + 1));
      }
      return list;
    }

    private String string() {
      take(SPACE);
      Matcher quoted = take(TEXT);
      must(quoted != null);
      String inner = text.substring(quoted.start() + 1, quoted.end() - 1);
      String plain = ESCAPE.matcher(inner).replaceAll(escape -> Matcher.quoteReplacement(
          escape.group(1) != null ? String.valueOf((char) Integer.parseInt(escape.group(1), 16)) : ESCAPES.getOrDefault(escape.group(2), escape.group(2))));
      must(plain.codePoints().noneMatch(c -> c >= 0xd800 && c <= 0xdfff)); // half of a surrogate pair
      return plain;
    }
  }
}
