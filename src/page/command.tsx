import { useState } from 'preact/hooks';

/** The command line that does the same, to be copied. */
export function Command({ line }: { readonly line: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(line);
      setCopied(true);
      setTimeout(() => setCopied(false), 2_000);
    } catch {
      // Not everywhere is it allowed; the text can be selected.
    }
  };
  return (
    <span class="command">
      <code>{line}</code>
      <button type="button" class="copy" onClick={() => void copy()} aria-label={`Copy: ${line}`}>
        {isCopied ? 'copied' : 'copy'}
      </button>
    </span>
  );
}
