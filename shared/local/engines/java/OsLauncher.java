import java.nio.file.*;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.*;
import org.opensearch.plugins.Plugin;

/** One OpenSearch 2.x node from the class path. Usage: OsLauncher HOME [setting=value ...] */
public class OsLauncher {
    static final String[] MODULES = {
        "org.opensearch.transport.Netty4Plugin",
        "org.opensearch.analysis.common.CommonAnalysisPlugin",
        "org.opensearch.painless.PainlessPlugin",
        "org.opensearch.index.reindex.ReindexPlugin",
        "org.opensearch.index.mapper.MapperExtrasPlugin",
        "org.opensearch.join.ParentJoinPlugin",
        "org.opensearch.search.aggregations.matrix.MatrixAggregationPlugin",
        "org.opensearch.ingest.common.IngestCommonPlugin",
        "org.opensearch.script.expression.ExpressionPlugin",
        "org.opensearch.script.mustache.MustachePlugin",
        "org.opensearch.geo.GeoModulePlugin",
    };

    static class EmbeddedNode extends Node {
        EmbeddedNode(Environment env, Collection<Class<? extends Plugin>> plugins) { super(env, plugins, false); }
    }

    public static void main(String[] args) {
        try {
            run(args);
        } catch (Throwable t) {
            t.printStackTrace();
            System.exit(1);
        }
    }

    static void run(String[] args) throws Exception {
        Path home = Paths.get(args[0]).toAbsolutePath();
        Files.createDirectories(home.resolve("config"));
        Settings.Builder s = Settings.builder()
            .put("path.home", home.toString())
            .put("path.data", home.resolve("data").toString())
            .put("path.logs", home.resolve("logs").toString())
            .put("cluster.name", "holdfast-local").put("node.name", "local-0")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1").put("http.port", "9200").put("transport.port", "0")
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
        for (int i = 1; i < args.length; i++) {
            int eq = args[i].indexOf('=');
            s.put(args[i].substring(0, eq), args[i].substring(eq + 1));
        }
        List<Class<? extends Plugin>> plugins = new ArrayList<>();
        for (String m : MODULES) plugins.add(Class.forName(m).asSubclass(Plugin.class));

        Node node = new EmbeddedNode(InternalSettingsPreparer.prepareEnvironment(
            s.build(), Collections.emptyMap(), home.resolve("config"), () -> "local-0"), plugins);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try { node.close(); node.awaitClose(20, TimeUnit.SECONDS); } catch (Throwable t) { t.printStackTrace(); }
            System.out.println("STOPPED");
        }));
        node.start();
        System.out.println("STARTED http://"
            + node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress());
        new CountDownLatch(1).await();
    }
}
