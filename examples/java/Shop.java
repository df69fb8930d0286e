import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

/**
 * A shop that sells only what is held: it verifies the reservation token, writes the
 * order, and says so to the edge. It needs StockgateToken.java and JDK 17:
 * javac *.java &amp;&amp; java Shop
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
  static final StockgateToken verifier = new StockgateToken(StockgateToken.Options.of("order-backend").jwks(System.getenv("STOCKGATE_JWKS_URL")));

  static class Refused extends Exception {
    final int status;

    Refused(int status, String message) {
      super(message);
      this.status = status;
    }
  }

  static String order(HttpExchange request) throws Exception {
    Map<String, Object> wanted = StockgateToken.Json.read(request.getRequestBody().readNBytes(65536));
    List<String> values = request.getRequestHeaders().get("Stockgate-Token");
    String token = values == null ? null : String.join(", ", values);
    var line = new StockgateToken.Line((String) wanted.get("sku"), (Long) wanted.get("quantity"), (String) wanted.getOrDefault("region", ""));
    // An order that was written keeps its answer.
    var result = verifier.verify(token, new StockgateToken.Order(
        request.getRequestHeaders().getFirst("X-User-Id"), false, List.of(line), orders::containsKey));
    if (!List.of("ok", "known").contains(result.reason()))
      throw new Refused(result.reason().equals("keys_unavailable") ? 503 : 403, result.reason());
    String jti = result.claims().jti();
    orders.putIfAbsent(jti, "pending");
    if (orders.get(jti).equals("pending")) orders.put(jti, confirm(jti, token));
    if (orders.get(jti).equals("refused")) throw new Refused(409, "the reservation has ended");
    return jti;
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
    Object reason = StockgateToken.Json.read(answer.body().getBytes(StandardCharsets.UTF_8)).get("reason");
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
}
