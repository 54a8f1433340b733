import { z } from 'zod';
import { RelayError } from '../model/fault.ts';
import { valueOf } from '../model/secret.ts';
import type { SaslSettings } from '../model/settings.ts';
import { authentication } from './client-faults.ts';
import { SASL_AUTHENTICATION_FAILED } from './fault-table.ts';
import { authenticators, type AuthenticationProvider, type Sasl } from './kafkajs-internals.ts';
import { OauthTokens } from './oauth-token.ts';

/** SASL as kafkajs takes it. One for all connections: tokens are shared. */
export function createSasl(settings: SaslSettings, timeoutMs: number): Sasl {
  const mechanism = settings.mechanism.toUpperCase();
  const provider =
    settings.mechanism === 'oauthbearer' ? oauthBearer(new OauthTokens(settings, timeoutMs)) : byPassword(settings);
  return { mechanism, authenticationProvider: withReason(mechanism, provider) };
}

/** The password is read for each connection. */
function byPassword(settings: Exclude<SaslSettings, { mechanism: 'oauthbearer' }>): AuthenticationProvider {
  const { mechanism, username, password } = settings;
  return (args) => authenticators[mechanism]({ username, password: valueOf(password) })(args);
}

/**
 * kafkajs calls whatever ends the exchange "authentication failed", a broker that goes away included. This keeps the
 * reason: the broker's refusal (58), or the connection's error.
 */
function withReason(mechanism: string, provider: AuthenticationProvider): AuthenticationProvider {
  return (args) => {
    let reason: unknown = null;
    const inner = provider({
      ...args,
      saslAuthenticate: (exchange) =>
        args.saslAuthenticate(exchange).catch((error: unknown) => {
          reason = error;
          throw error;
        }),
    });
    return {
      authenticate: async () => {
        try {
          await inner.authenticate();
        } catch (error) {
          const cause = reason ?? error;
          if (isRefusal(cause)) throw refused(args, mechanism, 'the broker refused the credentials', cause);
          throw cause;
        }
      },
    };
  };
}

const BrokerRefusal = z.object({ status: z.string().regex(/^[a-z_]{1,40}$/) });

/** RFC 7628. A broker that refuses the token says so in a message that looks like success until it is read (3.2.2). */
function oauthBearer(tokens: OauthTokens): AuthenticationProvider {
  return (args) => ({
    authenticate: async () => {
      const token = await tokens.token();
      const message = withSize(Buffer.from(`n,,\u0001auth=Bearer ${token}\u0001\u0001`));
      try {
        await args.saslAuthenticate({
          request: { encode: () => Promise.resolve(message) },
          response: {
            decode: (authBytes) => Promise.resolve(authBytes.subarray(SIZE_BYTES)),
            parse: (refusal) => {
              const text = (refusal as Buffer).toString();
              if (text !== '') throw refused(args, 'OAUTHBEARER', `the broker refused the token (${status(text)})`);
              return Promise.resolve();
            },
          },
        });
      } catch (error) {
        tokens.forget();
        throw error;
      }
    },
  });
}

function status(json: string): string {
  try {
    return BrokerRefusal.parse(JSON.parse(json)).status;
  } catch {
    return 'no reason given';
  }
}

const SIZE_BYTES = 4;

/** The field is BYTES in the protocol: its size, then the bytes. kafkajs leaves both to the mechanism. */
function withSize(message: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(SIZE_BYTES + message.length);
  framed.writeInt32BE(message.length, 0);
  message.copy(framed, SIZE_BYTES);
  return framed;
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === SASL_AUTHENTICATION_FAILED;
}

function refused(at: { host: string; port: number }, mechanism: string, why: string, cause?: unknown): RelayError {
  return new RelayError(authentication(`${at.host}:${at.port}`, `SASL ${mechanism}: ${why}`, cause));
}
