import { randomBytes } from 'node:crypto';
import {
  type Content,
  GenericContainer,
  getContainerRuntimeClient,
  ImageName,
  Network,
  type StartedNetwork,
  Wait,
} from 'testcontainers';
import type { Controls } from './handles.ts';
import { say, shown } from './progress.ts';
import { type Ready, serves } from './ready.ts';

/** Servers as containers. They end with this process: testcontainers' reaper sees to that. */

const LOG_LINES = 30;

type Runtime = Awaited<ReturnType<typeof getContainerRuntimeClient>>;
type Container = ReturnType<Runtime['container']['getById']>;

export interface DockerHost {
  readonly runtime: Runtime;
  /** Where published ports are reached. */
  readonly host: string;
}

let found: Promise<DockerHost | null> | undefined;

/** The Docker engine; null when none answers. */
export function dockerHost(): Promise<DockerHost | null> {
  return (found ??= findDockerHost());
}

async function findDockerHost(): Promise<DockerHost | null> {
  let runtime: Runtime;
  try {
    runtime = await getContainerRuntimeClient();
  } catch {
    return null;
  }
  const { host } = runtime.info.containerRuntime;
  return { runtime, host: host === 'localhost' ? '127.0.0.1' : host };
}

let network: Promise<StartedNetwork> | undefined;

/** Of all our containers: they reach each other by alias. */
function ourNetwork(): Promise<StartedNetwork> {
  return (network ??= new Network().start());
}

const images = new Map<string, Promise<boolean>>();

/** Whether the image is here or can be had; says so, once, when not. */
export function hasImage(docker: DockerHost, image: string): Promise<boolean> {
  const asked = images.get(image) ?? findImage(docker, image);
  images.set(image, asked);
  return asked;
}

async function findImage({ runtime }: DockerHost, image: string): Promise<boolean> {
  const name = ImageName.fromString(image);
  if (await runtime.image.exists(name)) return true;
  try {
    await shown(`Docker image ${image}`, null, () => runtime.image.pull(name));
    return true;
  } catch {
    say(`the Docker engine cannot get ${image}: going on without Docker`);
    return false;
  }
}

export interface ContainerRecipe extends Ready {
  readonly image: string;
  /** Its name for other containers. */
  readonly alias: string;
  readonly environment: Record<string, string>;
  readonly entrypoint?: string[];
  readonly command: string[];
  /** Port inside → port outside. */
  readonly ports: Readonly<Record<number, number>>;
  readonly files: readonly { readonly target: string; readonly content: Content }[];
}

export class ContainerServer implements Controls, AsyncDisposable {
  readonly controllable = true;
  readonly pid = null;
  readonly #recipe: ContainerRecipe;
  readonly #container: Container;

  private constructor(recipe: ContainerRecipe, container: Container) {
    this.#recipe = recipe;
    this.#container = container;
  }

  /** Returns when the server serves. */
  static async start(docker: DockerHost, recipe: ContainerRecipe): Promise<ContainerServer> {
    const described = new GenericContainer(recipe.image)
      .withNetwork(await ourNetwork())
      .withNetworkAliases(recipe.alias)
      .withEnvironment(recipe.environment)
      .withCommand(recipe.command)
      .withExposedPorts(...Object.entries(recipe.ports).map(([inside, host]) => ({ container: Number(inside), host })))
      .withCopyContentToContainer([...recipe.files])
      .withWaitStrategy(Wait.forAll([])); // `ready` tells
    if (recipe.entrypoint !== undefined) described.withEntrypoint(recipe.entrypoint);
    const started = await described.start();
    const container = docker.runtime.container.getById(started.getId());
    const server = new ContainerServer(recipe, container);
    try {
      await server.#served();
      return server;
    } catch (error) {
      await server.dispose();
      throw error;
    }
  }

  async freeze(): Promise<void> {
    await this.#container.pause();
  }

  async thaw(): Promise<void> {
    await this.#container.unpause();
  }

  async kill(): Promise<void> {
    await this.#container.kill();
    await this.#container.wait();
  }

  async stop(): Promise<void> {
    const { State: state } = await this.#container.inspect();
    if (state.Paused) await this.thaw();
    await this.#container.stop({ t: 30 });
  }

  async start(): Promise<void> {
    await this.#container.start();
    await this.#served();
  }

  async dispose(): Promise<void> {
    await this.#container.remove({ force: true, v: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #served(): Promise<void> {
    return serves(this.#recipe, async () => {
      const { State: state } = await this.#container.inspect();
      if (state.Running) return null;
      const log = await this.#container.logs({ stdout: true, stderr: true, tail: LOG_LINES });
      return `its container ended (exit code ${state.ExitCode}):\n${log.toString()}`;
    });
  }
}

/** A name for a container that no other run has. */
export function alias(kind: string): string {
  return `${kind}-${randomBytes(4).toString('hex')}`;
}
