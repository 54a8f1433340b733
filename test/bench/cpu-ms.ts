import { readFile } from 'node:fs/promises';

/** Clock ticks of /proc/<pid>/stat: USER_HZ, 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10;

/** CPU time of all threads of a process so far, user and system; Linux only. */
export async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
  // The second field is the program's name in parentheses and may hold blanks: count from behind it (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}
