import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.math.BigInteger;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.EdECPoint;
import java.security.spec.EdECPublicKeySpec;
import java.security.spec.NamedParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

/**
 * A shop that sells only what is held: it verifies the reservation token, writes the
 * order, and says so to the edge. It needs JDK 17 and nothing else: java Shop.java
 *
 * <pre>
 * STOCKGATE_JWKS_URL   https://shop.example.com/.well-known/jwks.json
 * STOCKGATE_API_URL    http://10.0.0.1:8444/stockgate, where stockgate_api is mounted
 * STOCKGATE_API_KEY    its key
 * </pre>
 */
public class Shop {
  /** Stands for a table with a UNIQUE column: reservation → pending, confirmed or refused. */
  static final Map<String, String> orders = new ConcurrentHashMap<>();

  static final HttpClient http = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();
  static Map<String, PublicKey> keys = Map.of();
  static Instant fetched = Instant.EPOCH;

  static class Refused extends Exception {
    final int status;

    Refused(int status, String message) {
      super(message);
      this.status = status;
    }
  }

  static String order(HttpExchange request) throws Exception {
    Map<?, ?> wanted = object(text(request.getRequestBody().readNBytes(65536)));
    List<String> tokens = request.getRequestHeaders().getOrDefault("Stockgate-Token", List.of());
    if (tokens.size() != 1) throw new Refused(403, "no reservation token");
    Map<?, ?> claims = verify(tokens.get(0));
    if (!claims.get("sub").equals(request.getRequestHeaders().getFirst("X-User-Id")))
      throw new Refused(403, "the token is for another buyer");
    List<?> lines = (List<?>) claims.get("lines");
    Map<?, ?> line = (Map<?, ?>) lines.get(0);
    boolean right = lines.size() == 1 && line.get("sku").equals(wanted.get("sku")) && line.get("qty").equals(wanted.get("quantity"))
        && (!line.containsKey("region") || line.get("region").equals(wanted.get("region")));
    if (!right) throw new Refused(403, "the token holds something else");

    String jti = (String) claims.get("jti");
    // A genuine token that is late: an order that was written keeps its answer.
    if ((Long) claims.get("exp") <= Instant.now().getEpochSecond() && !orders.containsKey(jti))
      throw new Refused(403, "the token has expired");
    orders.putIfAbsent(jti, "pending");
    if (orders.get(jti).equals("pending")) orders.put(jti, confirm(jti, tokens.get(0)));
    if (orders.get(jti).equals("refused")) throw new Refused(409, "the reservation has ended");
    return jti;
  }

  /** The claims of a genuine token, which may be past its exp. */
  static Map<?, ?> verify(String token) throws Refused, IOException, InterruptedException {
    try {
      String[] parts = token.split("\\.", -1);
      Map<?, ?> header = object(text(decode(parts[0])));
      // Never what the token says: one algorithm, one type.
      if (parts.length != 3 || !"EdDSA".equals(header.get("alg")) || !"stockgate+jwt".equals(header.get("typ")) || header.containsKey("crit"))
        throw new Refused(403, "another kind of token");
      Signature signature = Signature.getInstance("Ed25519");
      signature.initVerify(key((String) header.get("kid")));
      signature.update((parts[0] + "." + parts[1]).getBytes(StandardCharsets.US_ASCII));
      if (!signature.verify(decode(parts[2]))) throw new Refused(403, "a wrong signature");
      Map<?, ?> claims = object(text(decode(parts[1])));
      if (!"stockgate".equals(claims.get("iss")) || !"order-backend".equals(claims.get("aud")))
        throw new Refused(403, "a token for another buyer");
      return claims;
    } catch (GeneralSecurityException | RuntimeException err) {
      throw new Refused(403, "the token is not valid");
    }
  }

  /** The edge's public key; the set is fetched again for an unknown one, now and then. */
  static synchronized PublicKey key(String kid) throws GeneralSecurityException, IOException, InterruptedException {
    if (!keys.containsKey(kid) && fetched.plusSeconds(10).isBefore(Instant.now())) {
      fetched = Instant.now();
      var answer = http.send(HttpRequest.newBuilder(URI.create(System.getenv("STOCKGATE_JWKS_URL"))).timeout(Duration.ofSeconds(10)).build(), BodyHandlers.ofString());
      Map<String, PublicKey> found = new HashMap<>();
      for (Object member : (List<?>) object(answer.body()).get("keys")) {
        Map<?, ?> key = (Map<?, ?>) member;
        if ("Ed25519".equals(key.get("crv"))) found.put((String) key.get("kid"), ed25519(decode((String) key.get("x"))));
      }
      keys = found;
    }
    return Objects.requireNonNull(keys.get(kid));
  }

  /** RFC 8032, 5.1.3: y in little-endian, the highest bit is the sign of x. */
  static PublicKey ed25519(byte[] raw) throws GeneralSecurityException {
    boolean odd = (raw[31] & 0x80) != 0;
    raw[31] &= 0x7f;
    for (int i = 0; i < 16; i++) {
      byte swap = raw[i];
      raw[i] = raw[31 - i];
      raw[31 - i] = swap;
    }
    return KeyFactory.getInstance("Ed25519").generatePublic(new EdECPublicKeySpec(NamedParameterSpec.ED25519, new EdECPoint(odd, new BigInteger(1, raw))));
  }

  /** Tells the edge that the order is written. It may be asked again. */
  static String confirm(String reservation, String token) throws IOException, InterruptedException, Refused {
    var answer = http.send(
        HttpRequest.newBuilder(URI.create(System.getenv("STOCKGATE_API_URL") + "/reservations/" + reservation + "/confirm"))
            .timeout(Duration.ofSeconds(10))
            .header("Authorization", "Bearer " + System.getenv("STOCKGATE_API_KEY"))
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString("{\"token\":\"" + token + "\"}"))
            .build(),
        BodyHandlers.ofString());
    if (answer.statusCode() == 200) return "confirmed";
    Object reason = object(answer.body()).get("reason");
    if (answer.statusCode() == 409 || "not_found".equals(reason)) return "refused"; // refund_needed: give the money back
    throw new Refused(502, "the edge answers " + answer.statusCode() + " " + reason); // the order stays, to be confirmed later
  }

  public static void main(String[] args) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/api/order", request -> {
      try {
        answer(request, 201, order(request));
      } catch (Refused err) {
        answer(request, err.status, err.getMessage());
      } catch (IOException | InterruptedException err) {
        answer(request, 502, "the edge does not answer");
      } catch (Exception err) {
        answer(request, 400, "the order cannot be read");
      }
    });
    server.createContext("/orders", request ->
        answer(request, 200, orders.isEmpty() ? "[]" : "[\"" + String.join("\",\"", orders.keySet()) + "\"]"));
    server.start();
  }

  static void answer(HttpExchange request, int status, String text) throws IOException {
    byte[] body = text.getBytes(StandardCharsets.UTF_8);
    request.sendResponseHeaders(status, body.length);
    request.getResponseBody().write(body);
    request.close();
  }

  static byte[] decode(String base64url) {
    return Base64.getUrlDecoder().decode(base64url);
  }

  static String text(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }

  // What follows reads JSON. A shop that has a library for it uses that.

  static Map<?, ?> object(String json) {
    Json reader = new Json(json);
    Map<?, ?> value = (Map<?, ?>) reader.value(0);
    if (reader.next() != 0) throw new IllegalArgumentException("something follows the JSON");
    return value;
  }

  static final class Json {
    private final String text;
    private int at;

    Json(String text) {
      this.text = text;
    }

    /** The next character that is no space, which is not taken; 0 at the end. */
    char next() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
      return at < text.length() ? text.charAt(at) : 0;
    }

    boolean take(char c) {
      if (next() != c) return false;
      at++;
      return true;
    }

    void need(char c) {
      if (!take(c)) throw new IllegalArgumentException("not JSON");
    }

    /** An object is a Map, a list a List, a whole number a Long. */
    Object value(int depth) {
      if (depth > 32) throw new IllegalArgumentException("too deep");
      if (take('{')) {
        Map<String, Object> map = new LinkedHashMap<>();
        if (take('}')) return map;
        do {
          String name = string();
          need(':');
          if (map.put(name, value(depth + 1)) != null) throw new IllegalArgumentException("a name comes twice");
        } while (take(','));
        need('}');
        return map;
      }
      if (take('[')) {
        List<Object> list = new ArrayList<>();
        if (take(']')) return list;
        do list.add(value(depth + 1)); while (take(','));
        need(']');
        return list;
      }
      if (next() == '"') return string();
      int from = at;
      while (at < text.length() && "+-.0123456789aeflnrstuE".indexOf(text.charAt(at)) >= 0) at++;
      String word = text.substring(from, at);
      return switch (word) {
        case "true" -> true;
        case "false" -> false;
        case "null" -> "null";
        default -> word.matches("-?\\d+") ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
      };
    }

    String string() {
      need('"');
      StringBuilder out = new StringBuilder();
      for (char c; (c = text.charAt(at++)) != '"'; ) {
        if (c == '\\') {
          c = text.charAt(at++);
          int escape = "bfnrt".indexOf(c);
          if (escape >= 0) c = "\b\f\n\r\t".charAt(escape);
          else if (c == 'u') c = (char) Integer.parseInt(text.substring(at, at += 4), 16);
        }
        out.append(c);
      }
      return out.toString();
    }
  }
}
