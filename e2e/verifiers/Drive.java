import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;

/** Verifies what the test says, a JSON line each, with examples/java/StockgateToken.java. */
final class Drive {
  static Instant now;

  static final Clock CLOCK = new Clock() {
    @Override
    public Instant instant() {
      return now;
    }

    @Override
    public ZoneId getZone() {
      return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
      return this;
    }
  };

  public static void main(String[] args) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var threads = Executors.newCachedThreadPool();
    StockgateToken verifier = null;
    for (String line; (line = in.readLine()) != null; ) {
      Map<String, Object> step = StockgateToken.Json.read(line.getBytes(StandardCharsets.UTF_8));
      now = Instant.ofEpochMilli((Long) step.get("now_ms"));
      try {
        if ((Boolean) step.get("first"))
          verifier = new StockgateToken(new StockgateToken.Options((String) step.get("audience"), (String) step.get("issuer"), (String) step.get("url"),
              (String) step.get("secret"), Duration.ofMillis((Long) step.get("leeway_ms")), Duration.ofSeconds(5), CLOCK));
      } catch (IllegalArgumentException err) {
        System.out.println("{\"reason\":\"options\"}");
        continue;
      }
      List<?> known = (List<?>) step.get("known");
      var order = new StockgateToken.Order(
          (String) step.get("subject"), (Boolean) step.get("any_subject"), lines((List<?>) step.get("lines")), known == null ? null : known::contains);
      StockgateToken current = verifier;
      List<Callable<StockgateToken.Result>> calls = Collections.nCopies(((Long) step.get("times")).intValue(), () -> current.verify((String) step.get("token"), order));
      Set<String> reasons = new TreeSet<>();
      StockgateToken.Result result = null;
      for (var call : threads.invokeAll(calls)) {
        result = call.get();
        reasons.add(result.reason());
      }
      System.out.println("{\"reason\":\"" + String.join("|", reasons) + "\",\"id\":\"" + (result.claims() == null ? "" : result.claims().jti()) + "\"}");
    }
    threads.shutdown();
  }

  static List<StockgateToken.Line> lines(List<?> values) {
    if (values == null) return null;
    List<StockgateToken.Line> lines = new ArrayList<>();
    for (Object value : values) {
      Map<?, ?> line = (Map<?, ?>) value;
      lines.add(new StockgateToken.Line((String) line.get("sku"), (Long) line.get("qty"), (String) line.get("region")));
    }
    return lines;
  }
}
