import { startKafka, startMysql } from '../../stack/stack.ts';
import { temporaryDirectory } from '../../stack/ward.ts';

/** Starts servers, tells their processes and a directory, and waits to be killed. */
const directory = await temporaryDirectory();
const [mysql, kafka] = await Promise.all([startMysql(), startKafka()]);
process.stdout.write(`${JSON.stringify({ pids: [mysql.pid, kafka.nodes[0].pid], directory })}\n`);
await mysql.freeze();
setInterval(() => undefined, 60_000);
