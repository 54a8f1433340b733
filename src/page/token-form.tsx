import { useState } from 'preact/hooks';
import type { RelayWatch, View } from './relay-watch.ts';

/** Asked for where the relay tells nothing without it. */
export function TokenForm({ view, watch }: { readonly view: View; readonly watch: RelayWatch }) {
  const [token, setToken] = useState('');
  if (view.locked === null) return null;
  const { wasRefused } = view.locked;
  const save = (event: Event): void => {
    event.preventDefault();
    if (token.trim() !== '') watch.setToken(token.trim());
    setToken('');
  };
  return (
    <section class="card token" aria-labelledby="token-title">
      <h2 id="token-title">A token is needed</h2>
      <p>
        This relay tells more than its state only to those who have its token: <code>http.token</code> or{' '}
        <code>http.tokenFile</code> of its configuration. It is kept until this tab is closed.
      </p>
      <form onSubmit={save}>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
          aria-describedby="token-refused"
        />
        <button type="submit">Use it</button>
      </form>
      <p id="token-refused" class="bad-text" role="status">
        {wasRefused ? 'The relay refused this token.' : ''}
      </p>
    </section>
  );
}
