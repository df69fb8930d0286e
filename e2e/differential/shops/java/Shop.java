// Tomcat, embedded: getParameter, getPart, cookies, and JSON by Jackson and Gson.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

public class Shop extends HttpServlet {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory(java.nio.file.Path.of(System.getProperty("java.io.tmpdir")), "tomcat").toString());
        Connector connector = new Connector("HTTP/1.1");
        connector.setPort(Integer.parseInt(System.getenv("PORT")));
        connector.setProperty("address", InetAddress.getLoopbackAddress().getHostAddress());
        tomcat.setConnector(connector);
        var context = tomcat.addContext("", null);
        context.setRequestCharacterEncoding("UTF-8");
        context.setAllowCasualMultipartParsing(true);
        var servlet = Tomcat.addServlet(context, "shop", new Shop());
        servlet.setMultipartConfigElement(new MultipartConfigElement(System.getProperty("java.io.tmpdir")));
        context.addServletMappingDecoded("/", "shop");
        tomcat.start();
        tomcat.getServer().await();
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Map<String, Object> out = new LinkedHashMap<>();
        try {
            out.put("readings", readings(request));
        } catch (Exception e) {
            response.setStatus(400);
            out.put("error", e.getClass().getName());
        }
        out.put("method", request.getMethod());
        out.put("path", request.getRequestURI());
        String token = request.getHeader("Stockgate-Token");
        out.put("token", token == null ? "" : token);
        response.setContentType("application/json");
        response.getOutputStream().write(JSON.writeValueAsBytes(out));
    }

    List<Map<String, Object>> readings(HttpServletRequest request) throws Exception {
        List<Map<String, Object>> all = new ArrayList<>();
        String kind = String.valueOf(request.getContentType()).toLowerCase();
        boolean json = kind.contains("json") || kind.contains("text/plain");
        byte[] body = json ? request.getInputStream().readAllBytes() : new byte[0];
        all.add(reading("getParameter", "merged", request::getParameter));
        Map<String, String> last = new HashMap<>();
        request.getParameterMap().forEach((k, v) -> last.put(k, v[v.length - 1]));
        all.add(reading("getParameterMap, last", "merged", last::get));
        if (!json && !kind.contains("multipart") && body.length == 0) {
            all.add(reading("getParameter", kind.contains("urlencoded") ? "form" : "query", request::getParameter));
        }
        Map<String, String> cookies = new HashMap<>();
        if (request.getCookies() != null) for (Cookie c : request.getCookies()) cookies.put(c.getName(), c.getValue());
        all.add(reading("getCookies", "cookie", cookies::get));
        Map<String, String> names = Map.of("sku", "X-Sku", "quantity", "X-Quantity", "user", "X-User-Id");
        all.add(reading("getHeader", "header", name -> request.getHeader(names.get(name))));
        String[] steps = request.getServletPath().split("/");
        if (steps.length > 3 && steps[1].equals("path")) {
            all.add(reading("getServletPath", "path", Map.of("sku", steps[2], "quantity", steps[3])::get));
        }
        if (json && body.length > 0) {
            all.add(jackson(JSON.readTree(body)));
            all.add(gson(JsonParser.parseString(new String(body, StandardCharsets.UTF_8))));
        }
        return all;
    }

    static Map<String, Object> reading(String how, String from, Function<String, Object> get) {
        Map<String, Object> r = new LinkedHashMap<>(Map.of("how", how, "from", from));
        for (String name : List.of("sku", "quantity", "user")) {
            Object v = get.apply(name);
            r.put(name, v == null ? null : "s:" + v);
            if (name.equals("sku") && v instanceof String s) r.put("casts", casts(s));
        }
        return r;
    }

    static Map<String, Object> jackson(JsonNode root) {
        Map<String, Object> r = new LinkedHashMap<>(Map.of("how", "Jackson", "from", "body"));
        for (String name : List.of("sku", "quantity", "user")) r.put(name, value(root.get(name)));
        if (root.get("sku") != null) r.put("casts", casts(root.get("sku").asText()));
        JsonNode items = root.path("order").get("items");
        if (items == null || items.isNull()) return r;
        List<List<String>> lines = new ArrayList<>();
        if (!items.isArray()) lines.add(java.util.Arrays.asList("x:items", null));
        else for (JsonNode l : items) lines.add(java.util.Arrays.asList(value(l.get("sku")), value(l.get("count"))));
        r.put("lines", lines);
        return r;
    }

    static String value(JsonNode v) {
        if (v == null || v.isNull()) return null;
        if (v.isTextual()) return "s:" + v.asText();
        return v.isNumber() ? "n:" + v.asText() : "x:" + v.getNodeType();
    }

    static Map<String, Object> gson(JsonElement root) {
        Map<String, Object> r = new LinkedHashMap<>(Map.of("how", "Gson", "from", "body"));
        if (!root.isJsonObject()) return r;
        JsonObject o = root.getAsJsonObject();
        for (String name : List.of("sku", "quantity", "user")) r.put(name, value(o.get(name)));
        if (!(o.get("order") instanceof JsonObject order)) return r;
        JsonElement items = order.get("items");
        if (items == null || items.isJsonNull()) return r;
        List<List<String>> lines = new ArrayList<>();
        if (!items.isJsonArray()) lines.add(java.util.Arrays.asList("x:items", null));
        else for (JsonElement l : items.getAsJsonArray()) {
            lines.add(l.isJsonObject() ? java.util.Arrays.asList(value(l.getAsJsonObject().get("sku")), value(l.getAsJsonObject().get("count")))
                : java.util.Arrays.asList("x:line", null));
        }
        r.put("lines", lines);
        return r;
    }

    static String value(JsonElement v) {
        if (v == null || v.isJsonNull()) return null;
        if (!v.isJsonPrimitive() || v.getAsJsonPrimitive().isBoolean()) return "x:" + v.getClass().getSimpleName();
        return (v.getAsJsonPrimitive().isString() ? "s:" : "n:") + v.getAsString();
    }

    /** What programs make of a SKU that their database has as a number. */
    static List<String> casts(String sku) {
        List<String> out = new ArrayList<>();
        List<Callable<Object>> casts = List.of(
            () -> Long.parseLong(sku), () -> Long.decode(sku), () -> Double.parseDouble(sku), () -> new BigDecimal(sku).toPlainString(),
            () -> (long) Double.parseDouble(sku), () -> Math.round(Double.parseDouble(sku)), () -> (int) Long.parseLong(sku),
            () -> java.text.NumberFormat.getInstance(java.util.Locale.ROOT).parse(sku));
        for (Callable<Object> cast : casts) {
            try {
                out.add(String.valueOf(cast.call()));
            } catch (Exception e) {
                // this program refuses it
            }
        }
        return out;
    }
}
